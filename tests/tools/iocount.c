/* SPDX-License-Identifier: Apache-2.0 */
/* iocount: runs a command and writes what the kernel counted for it, a field of /proc/PID/io.
 * usage: iocount FIELD FILE COMMAND [ARG ...]
 * Exit: the command's status, 128 + N if a signal killed it. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The field's value from a process that has ended and was not waited for. */
static int copy_field(pid_t pid, const char *field, const char *to)
{
    char path[64], name[64];
    unsigned long long value;
    int found = 0;
    snprintf(path, sizeof path, "/proc/%ld/io", (long)pid);
    FILE *in = fopen(path, "r"), *out = in ? fopen(to, "w") : NULL;
    while (out && fscanf(in, "%63[^:]: %llu\n", name, &value) == 2)
        if (!strcmp(name, field))
            found = fprintf(out, "%llu\n", value) > 0;
    if (in)
        fclose(in);
    if (out && fclose(out))
        found = 0;
    return found;
}

int main(int argc, char **argv)
{
    siginfo_t info;
    if (argc < 4) {
        fputs("usage: iocount FIELD FILE COMMAND [ARG ...]\n", stderr);
        return 2;
    }
    pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[3], argv + 3);
        perror(argv[3]);
        _exit(127);
    }
    if (pid < 0 || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT)) {
        perror("iocount");
        return 3;
    }
    int counted = copy_field(pid, argv[1], argv[2]);
    waitpid(pid, NULL, 0);
    if (!counted) {
        fprintf(stderr, "iocount: no %s for a finished process\n", argv[1]);
        return 3;
    }
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}
