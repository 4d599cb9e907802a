/*
 * Arrays in a file of safetensors (https://github.com/huggingface/safetensors): 8 bytes, little-endian, the length of an
 * object; the object as JSON, {"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}; then all elements. Nothing is
 * allocated: a file is read as often as it takes.
 */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* an array: its path, its type and shape as the file says them, its elements; where these are in the file, if found */
struct stored_array {
    const char *path, *type, *shape;
    uint64_t bytes;
    void *elements;
    uint64_t place;
    int found;
};

/* how long names of a file may be that are read, and stands before those of state */
enum { LONGEST_NAME = 512 };
#define STATE_NAMES "state."

/* write the elements of an array into a file; whether all are there */
static int write_elements(const struct stored_array *array, FILE *file)
{
    return fwrite(array->elements, 1, (size_t)array->bytes, file) == array->bytes;
}

/* read the elements of an array from a file; whether all were there */
static int read_elements(const struct stored_array *array, FILE *file)
{
    return fread(array->elements, 1, (size_t)array->bytes, file) == array->bytes;
}

/* give all elements of an array the value 0 */
static void clear_elements(const struct stored_array *array)
{
    memset(array->elements, 0, (size_t)array->bytes);
}

/* write the object, after its length, which is not known before; 0 if that fails */
static int write_header(
    FILE *stream, const char *definition, uint64_t runs, uint64_t seed, const struct stored_array *arrays, size_t count)
{
    unsigned char length[8] = {0};
    uint64_t end = 0;
    if (fwrite(length, 1, 8, stream) != 8) return 0;
    int64_t total = fprintf(
        stream, "{\"__metadata__\":{\"definition\":\"%s\",\"runs\":\"%" PRIu64 "\",\"seed\":\"%" PRIu64 "\"}", definition,
        runs, seed);
    for (size_t n = 0; n < count; ++n) {
        const uint64_t begin = end;
        end += arrays[n].bytes;
        total += fprintf(
            stream, ",\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", arrays[n].path,
            arrays[n].type, arrays[n].shape, begin, end);
    }
    total += fprintf(stream, "}");
    for (; total % 8 != 0; ++total) fputc(' ', stream); /* elements begin at a multiple of 8 bytes */
    for (int n = 0; n < 8; ++n) length[n] = (unsigned char)((uint64_t)total >> 8 * n);
    return !ferror(stream) && fseek(stream, 0, SEEK_SET) == 0 && fwrite(length, 1, 8, stream) == 8
           && fseek(stream, 0, SEEK_END) == 0;
}

/* write arrays into a file, whole or not at all: 0, or 5 */
static int save_arrays(
    const char *path, const char *definition, uint64_t runs, uint64_t seed, const struct stored_array *arrays,
    size_t count)
{
    char temporary[4096];
    const int length = snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *stream = 0 < length && (size_t)length < sizeof temporary ? fopen(temporary, "wb") : NULL;
    if (stream == NULL) return 5;
    int done = write_header(stream, definition, runs, seed, arrays, count);
    for (size_t n = 0; n < count && done; ++n) done = write_elements(&arrays[n], stream);
    done = (fclose(stream) == 0) & done;
    done = done && rename(temporary, path) == 0;
    if (!done) remove(temporary);
    return done ? 0 : 5;
}

/* the object of a file that is being read: its next byte, -1 past its end, and how many follow */
struct json_reader {
    FILE *stream;
    int byte;
    uint64_t left, length, size;
    int failed;
};

/* an entry of the object, as texts, and what the notes say */
struct json_entry {
    char name[LONGEST_NAME], type[16], shape[LONGEST_NAME];
    uint64_t begin, end;
};

/* go to the next byte */
static void skip_byte(struct json_reader *reader)
{
    reader->byte = reader->left > 0 ? getc(reader->stream) : -1;
    if (reader->left > 0) --reader->left;
}

/* skip blanks, and then a byte if it is the next one; whether it was */
static int skip_if(struct json_reader *reader, int byte)
{
    while (reader->byte == ' ' || reader->byte == '\n' || reader->byte == '\r' || reader->byte == '\t') {
        skip_byte(reader);
    }
    if (reader->byte != byte) return 0;
    skip_byte(reader);
    return 1;
}

/* skip blanks and a byte that has to be there */
static void skip_over(struct json_reader *reader, int byte)
{
    if (!skip_if(reader, byte)) reader->failed = 1;
}

/* a text; what is too long, or has other bytes than names of ours, is no name of ours and becomes empty */
static void read_text(struct json_reader *reader, char *text, size_t room)
{
    size_t length = 0;
    int other = 0;
    skip_over(reader, '"');
    while (reader->byte != '"' && !reader->failed) {
        if (reader->byte < 0) reader->failed = 1;
        other |= reader->byte == '\\' || length + 1 >= room;
        if (reader->byte == '\\') skip_byte(reader);
        if (length + 1 < room) text[length++] = (char)reader->byte;
        skip_byte(reader);
    }
    skip_byte(reader);
    text[other ? 0 : length] = 0;
}

/* a whole number of at most 18 digits */
static uint64_t read_number(struct json_reader *reader)
{
    uint64_t number = 0;
    int digits = 0;
    skip_if(reader, ' ');
    for (; reader->byte >= '0' && reader->byte <= '9'; ++digits) {
        number = number * 10 % 1000000000000000000u + (uint64_t)(reader->byte - '0');
        skip_byte(reader);
    }
    if (digits < 1 || digits > 18) reader->failed = 1;
    return number;
}

/* a list of numbers as a text without blanks */
static void read_shape(struct json_reader *reader, char *text, size_t room)
{
    size_t length = 1;
    skip_over(reader, '[');
    text[0] = '[';
    while (!reader->failed && !skip_if(reader, ']')) {
        if (length > 1) skip_over(reader, ',');
        const uint64_t number = read_number(reader);
        const int more = snprintf(text + length, room - length, length > 1 ? ",%" PRIu64 : "%" PRIu64, number);
        length += (size_t)more;
        if (length + 2 >= room) reader->failed = 1;
        if (reader->failed) return;
    }
    text[length] = ']';
    text[length + 1] = 0;
}

/* the notes: how many runs there were, where they say so */
static void read_notes(struct json_reader *reader, uint64_t *runs)
{
    char name[16], said[32];
    skip_over(reader, '{');
    while (!reader->failed && !skip_if(reader, '}')) {
        skip_if(reader, ',');
        read_text(reader, name, sizeof name);
        skip_over(reader, ':');
        read_text(reader, said, sizeof said);
        if (strcmp(name, "runs") != 0) continue;
        *runs = 0;
        for (const char *p = said; *p >= '0' && *p <= '9'; ++p) *runs = *runs * 10 + (uint64_t)(*p - '0');
    }
}

/* what the object says of one array */
static void read_array(struct json_reader *reader, struct json_entry *entry)
{
    char word[16];
    int seen = 0;
    skip_over(reader, '{');
    while (!reader->failed && !skip_if(reader, '}')) {
        skip_if(reader, ',');
        read_text(reader, word, sizeof word);
        skip_over(reader, ':');
        if (strcmp(word, "dtype") == 0) {
            read_text(reader, entry->type, sizeof entry->type);
            seen |= 1;
        } else if (strcmp(word, "shape") == 0) {
            read_shape(reader, entry->shape, sizeof entry->shape);
            seen |= 2;
        } else if (strcmp(word, "data_offsets") == 0) {
            skip_over(reader, '[');
            entry->begin = read_number(reader);
            skip_over(reader, ',');
            entry->end = read_number(reader);
            skip_over(reader, ']');
            seen |= 4;
        } else {
            reader->failed = 1;
        }
    }
    if (seen != 7 || entry->end < entry->begin || entry->end > reader->size) reader->failed = 1;
}

/* the first entry of the object; 0 if there is none */
static int begin_entries(struct json_reader *reader)
{
    unsigned char length[8];
    rewind(reader->stream);
    reader->length = 0;
    if (fread(length, 1, 8, reader->stream) != 8) return 0;
    for (int n = 0; n < 8; ++n) reader->length |= (uint64_t)length[n] << 8 * n;
    if (reader->length > (uint64_t)100 << 20 || fseek(reader->stream, 0, SEEK_END) != 0) return 0;
    const int64_t whole = ftell(reader->stream);
    if (whole < 8 || (uint64_t)whole - 8 < reader->length || fseek(reader->stream, 8, SEEK_SET) != 0) return 0;
    reader->size = (uint64_t)whole - 8 - reader->length;
    reader->left = reader->length;
    skip_byte(reader);
    skip_over(reader, '{');
    return !reader->failed;
}

/* the next entry that is an array; 0 after the last one, or if the object is broken */
static int next_entry(struct json_reader *reader, struct json_entry *entry, uint64_t *runs)
{
    while (!reader->failed && !skip_if(reader, '}')) {
        skip_if(reader, ',');
        read_text(reader, entry->name, sizeof entry->name);
        skip_over(reader, ':');
        if (strcmp(entry->name, "__metadata__") != 0) {
            read_array(reader, entry);
            return !reader->failed;
        }
        read_notes(reader, runs);
    }
    return 0;
}

/* the path of an entry of a kind, state or other; NULL if it is of the other kind */
static const char *path_of_entry(const struct json_entry *entry, int state)
{
    const size_t length = sizeof STATE_NAMES - 1;
    if ((strncmp(entry->name, STATE_NAMES, length) == 0) != state) return NULL;
    return entry->name + (state ? length : 0);
}

/* find the places of arrays in a file, a prefix before their paths there, and so many bytes fewer; whether all are */
static int find_places(
    struct json_reader *reader, struct stored_array *arrays, size_t count, int state, const char *prefix, size_t fewer)
{
    struct json_entry entry;
    uint64_t runs;
    const size_t length = strlen(prefix);
    size_t found = 0;
    for (size_t n = 0; n < count; ++n) {
        if (strncmp(arrays[n].path, arrays[0].path, fewer) != 0) return 0;
        arrays[n].found = 0;
    }
    if (!begin_entries(reader)) return 0;
    while (next_entry(reader, &entry, &runs)) {
        const char *path = path_of_entry(&entry, state);
        if (path == NULL || strncmp(path, prefix, length) != 0) continue;
        for (size_t n = 0; n < count; ++n) {
            if (arrays[n].found || strcmp(path + length, arrays[n].path + fewer) != 0) continue;
            const int same = strcmp(arrays[n].type, entry.type) == 0 && strcmp(arrays[n].shape, entry.shape) == 0;
            arrays[n].found = same && entry.end - entry.begin == arrays[n].bytes ? 1 : 2;
            arrays[n].place = 8 + reader->length + entry.begin;
            ++found;
        }
    }
    return found == count && !reader->failed;
}

/* the first prefix of a file, in the order of the alphabet and after another one, that gives the path of an array */
static int next_prefix(struct json_reader *reader, const struct stored_array *array, int state, char *prefix)
{
    struct json_entry entry;
    uint64_t runs;
    char least[LONGEST_NAME];
    int any = 0;
    if (!begin_entries(reader)) return 0;
    while (next_entry(reader, &entry, &runs)) {
        const char *path = path_of_entry(&entry, state);
        const size_t length = path == NULL ? 0 : strlen(path), rest = strlen(array->path);
        if (length <= rest || path[length - rest - 1] != '.' || strcmp(path + length - rest, array->path) != 0) continue;
        char *const found = entry.name + (path - entry.name);
        found[length - rest] = 0;
        if (strcmp(found, prefix) <= 0 || (any && strcmp(found, least) >= 0)) continue;
        strcpy(least, found);
        any = 1;
    }
    if (any) strcpy(prefix, least);
    return any;
}

/* find arrays of a kind in a file, their paths equal after one common prefix of either: 0, 6 or 7 */
static int find_arrays(struct json_reader *reader, struct stored_array *arrays, size_t count, int state)
{
    char prefix[LONGEST_NAME] = "";
    int found = find_places(reader, arrays, count, state, prefix, 0);
    while (!found && !reader->failed && next_prefix(reader, arrays, state, prefix)) {
        found = find_places(reader, arrays, count, state, prefix, 0);
    }
    for (const char *p = arrays[0].path; !found && !reader->failed && *p != 0; ++p) {
        if (*p == '.') found = find_places(reader, arrays, count, state, "", (size_t)(p + 1 - arrays[0].path));
    }
    if (reader->failed) return 6;
    for (size_t n = 0; n < count; ++n) {
        if (!found || arrays[n].found != 1) return 7;
    }
    return 0;
}

/* whether a file has state, and how many runs it tells of; -1 if it is broken, or has other bytes than those of arrays */
static int look_into(struct json_reader *reader, uint64_t *runs)
{
    struct json_entry entry;
    uint64_t bytes = 0;
    int state = 0;
    *runs = 0;
    if (!begin_entries(reader)) return -1;
    while (next_entry(reader, &entry, runs)) {
        state |= path_of_entry(&entry, 1) != NULL;
        bytes += entry.end - entry.begin;
    }
    skip_if(reader, -1);
    return reader->failed || reader->byte != -1 || bytes != reader->size ? -1 : state;
}

/* read parameters and then state from a file, all or none; state that a file has none of begins with zeros */
static int load_arrays(
    const char *path, uint64_t *runs, struct stored_array *arrays, size_t parameters, size_t states)
{
    struct json_reader reader = {fopen(path, "rb"), 0, 0, 0, 0, 0};
    uint64_t told;
    if (reader.stream == NULL) return 5;
    const int state = look_into(&reader, &told);
    int status = state < 0 ? 6 : 0;
    if (status == 0 && parameters > 0) status = find_arrays(&reader, arrays, parameters, 0);
    if (status == 0 && state > 0 && states > 0) status = find_arrays(&reader, arrays + parameters, states, 1);
    const size_t count = parameters + (state > 0 ? states : 0);
    for (size_t n = 0; n < count && status == 0; ++n) {
        if (fseek(reader.stream, (long)arrays[n].place, SEEK_SET) != 0) status = 5;
        else if (!read_elements(&arrays[n], reader.stream)) status = 5;
    }
    fclose(reader.stream);
    if (status != 0) return status;
    for (size_t n = count; n < parameters + states; ++n) clear_elements(&arrays[n]);
    *runs = told;
    return 0;
}

#endif
