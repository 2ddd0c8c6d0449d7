/* synth_vocab.c - the tokenizer files of a synthetic checkpoint: tiktoken.model with a few English
 * words, tokenizer_config.json with K3's special names at their released distance. */
#include "synth_plan.h"

#include <string.h>

/* Text reads better when words bring their space. None begins with a capital consonant and a vowel:
 * that is how the made-up syllables below begin. */
static const char *const words[] = {
    " the", " and", " of", " to", " a", " in", ".\n", " it", " was", " on", " is", " with", " that",
    " at", " as", " for", " by", " from", " he", " she", " they", " we", " you", " not", " but",
    " sea", " wind", " water", " light", " night", " ship", " stone", " bird", " river", " rain",
    " house", " hill", " road", " fire", " tree", " star", " moon", " sun", " snow", " salt",
    " old", " new", " long", " cold", " warm", " small", " great", " dark", " bright", " slow",
    " quiet", " came", " went", " saw", " said", " stood", " ran", " fell", " rose", " found",
    " kept", " made", " gave", " took", " left", " held", " lay", " met", " knew", " over",
    " under", " near", " far", " past", " down", " up", " out", " into", " then", " when", " where",
    " there", " here", " now", " again", " still", " never", " always", " once", " more", " all",
    " some", " one", " two", " three", " four", " nine", " day", " year", " hour", " morning",
    " evening", " winter", " summer", " spring", " harbour", " island", " window", " door",
    " garden", " bridge", " market", " letter", " story", " song", " bread", " apple", " lamp",
    " boat", " keeper", " sailor", " child", " mother", " father", " friend", " stranger", " horse",
    " fish", " cloud", " storm", " shore", " field", " grass", " leaf", " silver", " green",
    " white", " black", " red", " blue", " would", " could", " had", " have", " were", " are",
    " be", " been", " this", " those", " my", " your", " his", " her", " our", " their", " who",
    " what", " how", " or", " so", " if", " no", " yes", "The", "And", "It", "In", "At", "As",
    "Only", "Under", "Every", "the", "and", "ing", "er", "ed", "ly", "'s",
};
enum { N_WORDS = sizeof words / sizeof words[0], MAX_BEGINNINGS = 768, WORD_SIZE = 16 };

struct vocab {
    char begin[MAX_BEGINNINGS][WORD_SIZE]; /* proper beginnings of chosen words, no word itself */
    const char *word[N_WORDS];
    size_t n_begin, n_words;
};

static bool is_word(const char *text, size_t len)
{
    for (size_t i = 0; i < N_WORDS; i++)
        if (strlen(words[i]) == len && memcmp(words[i], text, len) == 0)
            return true;
    return false;
}

static bool is_beginning(const struct vocab *v, const char *text, size_t len)
{
    for (size_t i = 0; i < v->n_begin; i++)
        if (strlen(v->begin[i]) == len && memcmp(v->begin[i], text, len) == 0)
            return true;
    return false;
}

/* Takes a word together with the beginnings that merging goes through, if there is room. A
 * beginning that is a word of the list must have been taken before. */
static void take_word(struct vocab *v, const char *word, size_t room)
{
    const size_t before = v->n_begin;
    bool fits = true;
    for (size_t len = 2; len < strlen(word) && fits; len++) {
        if (is_word(word, len)) {
            fits = false;
            for (size_t i = 0; i < v->n_words && !fits; i++)
                fits = strlen(v->word[i]) == len && memcmp(v->word[i], word, len) == 0;
        } else if (!is_beginning(v, word, len)) {
            fits = v->n_begin < MAX_BEGINNINGS && len < WORD_SIZE;
            if (fits)
                snprintf(v->begin[v->n_begin++], WORD_SIZE, "%.*s", (int)len, word);
        }
    }
    if (fits && v->n_begin + v->n_words < room)
        v->word[v->n_words++] = word;
    else
        v->n_begin = before;
}

static void choose(const struct k3_synth *s, struct vocab *v)
{
    v->n_begin = v->n_words = 0;
    for (size_t i = 0; i < N_WORDS; i++)
        take_word(v, words[i], s->vocab - 512);
}

void synth_words(const struct k3_synth *s, uint32_t *first, uint32_t *end)
{
    struct vocab v;
    choose(s, &v);
    *first = 256 + (uint32_t)v.n_begin;
    *end = *first + (uint32_t)v.n_words;
}

/* ---- tiktoken.model ---------------------------------------------------------------------------- */

/* Byte of rank i < 256, in GPT-2's order: printable Latin-1 first, then the rest. */
static unsigned char byte_of_rank(int rank)
{
    int seen = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int b = 0; b < 256; b++) {
            const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
            if (printable == (pass == 0) && seen++ == rank)
                return (unsigned char)b;
        }
    return 0;
}

static void put_line(FILE *f, const char *token, size_t len, unsigned rank)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *b = (const unsigned char *)token;
    for (size_t i = 0; i < len; i += 3) {
        const size_t n = len - i < 3 ? len - i : 3;
        const unsigned u = (unsigned)b[i] << 16 | (n > 1 ? (unsigned)b[i + 1] << 8 : 0u) |
                           (n > 2 ? b[i + 2] : 0u);
        const char quad[4] = {digit[u >> 18], digit[u >> 12 & 63], n > 1 ? digit[u >> 6 & 63] : '=',
                              n > 2 ? digit[u & 63] : '='};
        fwrite(quad, 1, 4, f);
    }
    fprintf(f, " %u\n", rank);
}

/* Made-up word i: capital consonant, vowel, consonant, ...; all of two letters first, then of three,
 * so that each is a shorter one and a letter. Returns its length. */
static size_t syllables(uint32_t i, char out[WORD_SIZE])
{
    static const char consonant[] = "bcdfghjklmnpqrstvwxyz", vowel[] = "aeiou";
    size_t len = 2;
    for (uint32_t count = 21 * 5; i >= count; len++) {
        i -= count;
        count *= len % 2 ? 5 : 21;
    }
    for (size_t k = len; k-- > 0;) {
        const uint32_t base = k % 2 ? 5 : 21;
        out[k] = k % 2 ? vowel[i % base] : consonant[i % base];
        i /= base;
    }
    out[0] = (char)(out[0] - 'a' + 'A');
    return len;
}

bool synth_put_tiktoken(const struct k3_synth *s, FILE *f)
{
    struct vocab v;
    choose(s, &v);
    unsigned rank = 0;
    for (; rank < 256; rank++) {
        const char byte = (char)byte_of_rank((int)rank);
        put_line(f, &byte, 1, rank);
    }
    for (size_t i = 0; i < v.n_begin; i++, rank++)
        put_line(f, v.begin[i], strlen(v.begin[i]), rank);
    for (size_t i = 0; i < v.n_words; i++, rank++)
        put_line(f, v.word[i], strlen(v.word[i]), rank);
    for (uint32_t i = 0; rank < s->vocab - 256; i++, rank++) {
        char made[WORD_SIZE];
        put_line(f, made, syllables(i, made), rank);
    }
    return !ferror(f);
}

/* ---- tokenizer_config.json --------------------------------------------------------------------- */

static const struct {
    unsigned offset;
    const char *name;
} specials[] = {
    {0, "[BOS]"}, {1, "[EOS]"}, {2, "<|end_of_msg|>"}, {3, "<|open|>"}, {4, "<|close|>"},
    {5, "<|sep|>"}, {6, "[start_header_id]"}, {7, "[end_header_id]"}, {9, "[EOT]"},
    {18, "<|media_begin|>"}, {19, "<|media_content|>"}, {20, "<|media_end|>"},
    {21, "<|media_pad|>"}, {65, "<osagent_mode>"}, {254, "[UNK]"}, {255, "[PAD]"},
};

bool synth_put_tokenizer_config(const struct k3_synth *s, FILE *f)
{
    fputs("{\n  \"added_tokens_decoder\": {\n", f);
    const size_t n = sizeof specials / sizeof specials[0];
    for (size_t i = 0; i < n; i++)
        fprintf(f, "    \"%u\": {\"content\": \"%s\", \"lstrip\": false, \"normalized\": false, "
                "\"rstrip\": false, \"single_word\": false, \"special\": true}%s\n",
                s->vocab - 256 + specials[i].offset, specials[i].name, i + 1 < n ? "," : "");
    fputs("  },\n"
          "  \"additional_special_tokens\": [\"<|end_of_msg|>\", \"[start_header_id]\", "
          "\"[end_header_id]\", \"[EOT]\", \"<|media_begin|>\", \"<|media_content|>\", "
          "\"<|media_end|>\", \"<|media_pad|>\", \"<osagent_mode>\"],\n"
          "  \"bos_token\": \"[BOS]\",\n  \"clean_up_tokenization_spaces\": false,\n"
          "  \"eos_token\": \"[EOS]\",\n  \"pad_token\": \"[PAD]\",\n"
          "  \"tokenizer_class\": \"TikTokenTokenizer\",\n  \"unk_token\": \"[UNK]\"\n}\n", f);
    return !ferror(f);
}
