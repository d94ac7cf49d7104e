/* SPDX-License-Identifier: Apache-2.0 */
/* plot: miss-ratio curves and the use of layers as SVG. */
#include "simulate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: k3-trace plot [-o FILE] [-k curves|heat|both] [-p LIST] [-u] [-w N|prefill] [TRACE]\n"
    "\n"
    "Miss ratios by cache size for each policy, and for each layer how its choices spread over\n"
    "its experts, most used first.\n";

/* Points of the page. */
enum { WIDTH = 844, LEFT = 64, RIGHT = 704, TOP = 72, CURVES = 340, GAP = 84, SIZES = 56 };
/* Of the heat map: its columns at most, a layer's height, the height that a layer's number needs. */
enum { COLUMNS = 64, ROW_MIN = 5, ROW_MAX = 14, HEAT = 460, LABEL = 14 };

/* Okabe and Ito's palette: told apart with any colour vision, and in print. */
static const char *const colour[] = {"#0072b2", "#e69f00", "#009e73", "#d55e00",
                                     "#cc79a7", "#56b4e9", "#999900", "#000000"};
#define UNUSED "#eeeeee"
static const char *const dashes[] = {"", "6 3", "2 2"};

enum { DRAW_CURVES, DRAW_HEAT, DRAW_BOTH }; /* --kind */

struct plot {
    struct sim_job job;
    const char *out, *title;
    int kind;
    bool curves, heat;
    FILE *to;
};

static void put_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", to);
        else if (*text == '&')
            fputs("&amp;", to);
        else
            fputc(*text, to);
    }
}

static void label(FILE *to, double x, double y, const char *anchor, const char *extra, const char *text)
{
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>", x, y, anchor, extra);
    put_text(to, text);
    fputs("</text>\n", to);
}

static void line(FILE *to, double x1, double y1, double x2, double y2, const char *class)
{
    fprintf(to, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1, y1, x2, y2);
}

/* ---- curves ------------------------------------------------------------------------------- */

struct scale {
    double low, high; /* bytes at the left and right edge, logarithmic */
};

static double x_of(const struct scale *s, double bytes)
{
    double x = LEFT + (RIGHT - LEFT) * log(bytes / s->low) / log(s->high / s->low);
    return x < LEFT ? LEFT : x; /* sizes are whole slots: the first may be a little below the scale */
}

static double y_of(double miss)
{
    return TOP + CURVES * (1 - miss);
}

static void draw_axes(FILE *to, const struct scale *s)
{
    char text[32];
    for (int i = 0; i <= 10; i += 2) {
        line(to, LEFT, y_of(i / 10.0), RIGHT, y_of(i / 10.0), i ? "grid" : "axis");
        snprintf(text, sizeof text, "%d", i * 10);
        label(to, LEFT - 8, y_of(i / 10.0) + 4, "end", "", text);
    }
    for (double power = 1; power <= s->high; power *= 10)
        for (int m = 1; m <= 5; m = m == 1 ? 2 : m == 2 ? 5 : 10) {
            double bytes = power * m;
            if (bytes < s->low * 0.999 || bytes > s->high * 1.001)
                continue;
            line(to, x_of(s, bytes), TOP, x_of(s, bytes), TOP + CURVES, "grid");
            k3_fmt_bytes(text, (uint64_t)bytes);
            char *dot = strchr(text, '.'), *unit = strchr(text, ' ');
            if (dot && unit)
                memmove(dot, unit, strlen(unit) + 1);
            label(to, x_of(s, bytes), TOP + CURVES + 18, "middle", "", text);
        }
    label(to, (LEFT + RIGHT) / 2.0, TOP + CURVES + 38, "middle", "", "expert cache");
    fprintf(
        to,
        "<text transform=\"translate(18 %.1f) rotate(-90)\" text-anchor=\"middle\">misses, %% of requests</text>\n",
        TOP + CURVES / 2.0);
}

static double miss(const struct outcome *o, uint64_t hits)
{
    return o->requests ? 1 - (double)hits / (double)o->requests : 0;
}

static void draw_lru(FILE *to, const struct outcome *o, const struct scale *s)
{
    double size = (double)o->header.expert_bytes, last_x = -1;
    for (uint32_t slots = (uint32_t)(s->low / size) + 1; slots * size <= s->high * 1.0001; slots++) {
        double x = x_of(s, slots * size);
        if (x < last_x + 0.5 && slots * size < s->high * 0.999)
            continue;
        fprintf(to, "%.1f,%.1f ", x, y_of(miss(o, k3_curve_hits(o->curve, slots))));
        last_x = x;
    }
}

/* Names beside the lines' ends, moved apart where they would overlap. */
static void draw_names(FILE *to, const struct sim_job *job, const double *end)
{
    double at[K3_SIM_COUNT];
    int order[K3_SIM_COUNT];
    for (int k = 0; k < job->kinds; k++) {
        int j = k;
        for (; j && end[order[j - 1]] > end[k]; j--)
            order[j] = order[j - 1];
        order[j] = k;
    }
    for (int i = 0; i < job->kinds; i++)
        at[i] = i && end[order[i]] < at[i - 1] + 15 ? at[i - 1] + 15 : end[order[i]];
    double over = job->kinds ? at[job->kinds - 1] - (TOP + CURVES) : 0;
    for (int i = 0; i < job->kinds; i++) {
        char extra[64];
        int k = order[i];
        snprintf(extra, sizeof extra, " fill=\"%s\"", colour[k % 8]);
        double y = over > 0 ? at[i] - over : at[i];
        fprintf(to,
                "<line stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" "
                "y2=\"%.1f\"/>\n",
                colour[k % 8], dashes[k / 8], RIGHT + 8, y, RIGHT + 26, y);
        label(to, RIGHT + 32, y + 4, "start", extra, k3_sim_name(job->kind[k]));
    }
}

static void draw_curves(const struct plot *p, const struct outcome *o, const struct scale *s)
{
    const struct sim_job *job = &p->job;
    double end[K3_SIM_COUNT], size = (double)o->header.expert_bytes;
    double set = token_slots(&o->header.shape) * size, floor = miss(o, o->requests - o->first);
    char text[96], bytes[24];
    draw_axes(p->to, s);
    if (set > s->low && set < s->high) {
        line(p->to, x_of(s, set), TOP, x_of(s, set), TOP + CURVES, "mark");
        snprintf(text, sizeof text, "one token's set, %s", k3_fmt_bytes(bytes, (uint64_t)set));
        label(p->to, x_of(s, set), TOP - 5, "middle", " class=\"note\"", text); /* outside, where no curve is */
    }
    line(p->to, LEFT, y_of(floor), RIGHT, y_of(floor), "mark");
    snprintf(text, sizeof text, "first use of an expert, %.1f %%", 100 * floor);
    label(p->to, LEFT + 6, y_of(floor) + (floor > 0.08 ? 15 : -6), "start", " class=\"note\"", text);
    for (int k = job->kinds - 1; k >= 0; k--) {
        fprintf(p->to, "<polyline stroke=\"%s\" stroke-dasharray=\"%s\" points=\"", colour[k % 8], dashes[k / 8]);
        for (int z = 0; z < job->sizes && job->kind[k] != K3_SIM_LRU; z++)
            fprintf(p->to, "%.1f,%.1f ", x_of(s, job->slots[z] * size), y_of(miss(o, hits_at(o, job, k, z))));
        if (job->kind[k] == K3_SIM_LRU)
            draw_lru(p->to, o, s);
        fputs("\"/>\n", p->to);
        end[k] = y_of(miss(o, hits_at(o, job, k, job->sizes - 1)));
    }
    draw_names(p->to, job, end);
}

/* ---- layers ---------------------------------------------------------------------------------- */

static int descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Light to dark blue by use relative to even use: 1/8 and less to 32 and more. What is never used is UNUSED. */
static void shade(char *buf, size_t size, double relative)
{
    double t = relative > 0 ? (log2(relative) + 3) / 8 : 0;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    snprintf(buf, size, "#%02x%02x%02x", (int)(214 - 206 * t), (int)(230 - 182 * t), (int)(245 - 138 * t));
}

/* Left edge of a column, at a whole point: no seams. */
static int column_at(int column, int columns)
{
    return LEFT + (RIGHT - LEFT) * column / columns;
}

/* Columns of as many experts each; with few experts, one each. */
static void draw_layer(FILE *to, uint64_t *uses, int experts, int y, int row)
{
    uint64_t all = 0;
    int columns = experts < COLUMNS ? experts : COLUMNS;
    char text[32];
    int used = 0;
    qsort(uses, (size_t)experts, sizeof *uses, descending);
    for (int e = 0; e < experts; e++) {
        all += uses[e];
        used += uses[e] > 0;
    }
    for (int c = 0; c < columns; c++) {
        int from = (int)((int64_t)c * experts / columns), end = (int)((int64_t)(c + 1) * experts / columns);
        int x = column_at(c, columns);
        uint64_t n = 0;
        for (int e = from; e < end; e++)
            n += uses[e];
        if (!n)
            continue;
        shade(text, sizeof text, (double)n / (double)all * experts / (end - from));
        fprintf(to, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n", x, y,
                column_at(c + 1, columns) - x, row, text);
    }
    fprintf(to, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#777\"/>\n", RIGHT + 12, y + 0.5,
            100.0 * used / experts, row - 1.0);
}

static void draw_legend(FILE *to, double y)
{
    label(to, LEFT, y + 10, "start", "", "use, against an even spread:");
    for (int i = -4; i <= 5; i++) {
        char text[32] = UNUSED;
        double x = LEFT + 190 + (i + 4) * 44;
        if (i > -4)
            shade(text, sizeof text, exp2(i));
        fprintf(to,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"44\" height=\"12\" fill=\"%s\" stroke=\"#ccc\" "
                "stroke-width=\"0.5\"/>\n",
                x, y, text);
        snprintf(text, sizeof text, i == -4 ? "none" : i < 0 ? "1/%d" : "%d", 1 << abs(i));
        label(to, x + 22, y + 25, "middle", " class=\"note\"", text);
    }
}

/* Points a layer takes. */
static int row_height(int layers)
{
    int row = HEAT / layers;
    return row < ROW_MIN ? ROW_MIN : row > ROW_MAX ? ROW_MAX : row;
}

/* Every how many layers a number has room. */
static int label_step(int row)
{
    return row >= LABEL ? 1 : 2 * row >= LABEL ? 2 : 5;
}

static void draw_heat(const struct plot *p, const struct outcome *o, int top)
{
    const k3_shape *s = &o->header.shape;
    int layers = s->layers - s->first, row = row_height(layers), every = label_step(row);
    char text[64];
    label(p->to, LEFT, top - 10, "start", "", "experts of a layer, most used first");
    label(p->to, RIGHT + 12, top - 10, "start", "", "experts used");
    fprintf(p->to, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n", LEFT, top,
            RIGHT - LEFT, layers * row, UNUSED);
    fprintf(p->to, "<rect x=\"%d\" y=\"%d\" width=\"100\" height=\"%d\" fill=\"#eee\"/>\n", RIGHT + 12, top,
            layers * row);
    for (int l = 0; l < layers; l++) {
        int y = top + l * row;
        draw_layer(p->to, o->uses + (size_t)l * (size_t)s->experts, s->experts, y, row);
        if ((l + s->first) % every)
            continue;
        snprintf(text, sizeof text, "%d", l + s->first);
        label(p->to, LEFT - 8, y + row / 2.0 + 4, "end", "", text);
    }
    fprintf(p->to, "<text transform=\"translate(18 %.1f) rotate(-90)\" text-anchor=\"middle\">layer</text>\n",
            top + layers * row / 2.0);
    snprintf(text, sizeof text, "of %d", s->experts);
    label(p->to, RIGHT + 112, top + layers * row + 16, "end", " class=\"note\"", text);
    draw_legend(p->to, top + layers * row + 24);
}

/* ---- the page ----------------------------------------------------------------------------------- */

static void draw(const struct plot *p, const struct outcome *o, const struct scale *s)
{
    const k3_shape *shape = &o->header.shape;
    int heat_top = p->curves ? TOP + CURVES + GAP : TOP + 16, layers = shape->layers - shape->first;
    int height = p->heat ? heat_top + layers * row_height(layers) + 72 : TOP + CURVES + 56;
    char text[160];
    fprintf(
        p->to,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#222\" "
        "shape-rendering=\"geometricPrecision\">\n"
        "<style>polyline{fill:none;stroke-width:2;stroke-linejoin:round} .grid{stroke:#e4e4e4} .axis{stroke:#444} "
        ".mark{stroke:#888;stroke-dasharray:4 4} .note{font-size:11px;fill:#666}</style>\n"
        "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
        WIDTH, height, WIDTH, height, WIDTH, height);
    label(p->to, LEFT, 26, "start", " font-size=\"16\" font-weight=\"bold\"", p->title ? p->title : o->header.source);
    snprintf(text, sizeof text,
             "%" PRIu64 " requests (%s) of %" PRIu64 " positions, %" PRIu64 " distinct experts of %d x %d",
             o->requests, p->job.batched ? "batched" : "one by one", o->tokens, o->distinct, layers, shape->experts);
    label(p->to, LEFT, 45, "start", " class=\"note\"", text);
    if (p->curves)
        draw_curves(p, o, s);
    if (p->heat)
        draw_heat(p, o, heat_top);
    fputs("</svg>\n", p->to);
}

/* Sizes spread evenly over the logarithmic scale. */
static void choose_sizes(struct sim_job *job, const k3_trace_header *h, const struct scale *s)
{
    job->sizes = 0;
    for (int i = 0; i <= SIZES; i++) {
        double bytes = s->low * pow(s->high / s->low, (double)i / SIZES);
        uint32_t slots = (uint32_t)(bytes / (double)h->expert_bytes + 0.5);
        if (slots && (!job->sizes || slots > job->slots[job->sizes - 1]))
            job->slots[job->sizes++] = slots;
    }
}

static int draw_to(struct plot *p, const struct outcome *o, const struct scale *s, k3_err *err)
{
    k3_file *file = NULL;
    bool std = !strcmp(p->out, "-");
    int status = std ? 0 : k3_file_create(&file, p->out, err);
    if (status)
        return status;
    p->to = std ? stdout : k3_file_stream(file);
    draw(p, o, s);
    return std ? 0 : k3_file_commit(&file, err);
}

static int run(struct plot *p, k3_trace_reader *r, k3_err *err)
{
    const k3_trace_header *h = k3_trace_info(r);
    double size = (double)h->expert_bytes, pool = (double)(h->shape.layers - h->shape.first) * h->shape.experts;
    double set = token_slots(&h->shape);
    /* from a sixteenth of a token's set to sixteen of them, or all experts */
    struct scale s = {.low = size * (set > 16 ? set / 16 : 1), .high = size * (set * 16 < pool ? set * 16 : pool)};
    struct outcome o;
    if (s.high < 2 * s.low)
        s.high = 2 * s.low;
    choose_sizes(&p->job, h, &s);
    p->job.count_uses = p->heat;
    if (!p->curves)
        p->job.kinds = 0;
    int status = simulate(r, &p->job, &o, err);
    if (status)
        return status;
    status = draw_to(p, &o, &s, err);
    outcome_free(&o);
    return status;
}

static int take_policies(void *plot, const char *value, k3_err *err)
{
    return parse_policies(value, &((struct plot *)plot)->job, err);
}

static int take_warmup(void *plot, const char *value, k3_err *err)
{
    return parse_warmup(value, &((struct plot *)plot)->job.warmup, err);
}

#define AT(field) offsetof(struct plot, field)
static const k3_opt table[] = {
    {"output", 'o', "FILE", "where to write (default: standard output)", K3_OPT_TEXT, AT(out)},
    {"kind", 'k', "KIND", "curves, heat or both (default)", K3_OPT_WORD, AT(kind), .words = "curves|heat|both"},
    {"policy", 'p', "LIST", "as for sim (default: lru,layers,lfu,belady-bypass)", K3_OPT_CALL, .words = SIM_POLICY_WORDS "|all",
     .take = take_policies},
    {"unbatched", 'u', NULL, "request by request", K3_OPT_NO_FLAG, AT(job.batched)},
    {"warmup", 'w', "N|prefill", "what is not counted, as for sim", K3_OPT_CALL, .words = "prefill", .take = take_warmup},
    {"title", 't', "TEXT", "heading (default: the trace's source)", K3_OPT_TEXT, AT(title)},
    {"seed", 0, "N", "of policy random (default: 1)", K3_OPT_U64, AT(job.seed)},
    {"threads", 0, "N", "policies and sizes at once (default: one a core)", K3_OPT_INT, AT(job.threads), 1, 1024},
    K3_COMMON_OPTS,
    {0},
};

int cmd_plot(int argc, char **argv, k3_err *err)
{
    static struct plot p;
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    k3_trace_reader *r;
    bool done;
    p = (struct plot){.out = "-", .kind = DRAW_BOTH, .job = {.batched = true, .seed = 1, .threads = k3_threads_default()}};
    int status = parse_policies("lru,layers,lfu,belady-bypass", &p.job, err);
    if (!status)
        status = k3_opt_parse(&args, &p, &done, err);
    if (status || done)
        return status;
    p.curves = p.kind != DRAW_HEAT;
    p.heat = p.kind != DRAW_CURVES;
    status = open_operand(&args, &r, err);
    if (status)
        return status;
    status = run(&p, r, err);
    k3_trace_free(r);
    return status;
}
