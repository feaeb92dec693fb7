/*
 * replay.c
 *	  Runs a fuzz target without libFuzzer: a corpus, and mutations of it that are the same every time.
 *
 *	NAME CORPUS [MUTATIONS]		each input of the corpus, and so many mutations in all
 *	NAME -r FILE...				these inputs, as libFuzzer writes them
 *	NAME -x CORPUS DIRECTORY	writes the corpus as files for libFuzzer
 *	NAME -c DIRECTORY			prints such files as a corpus
 *
 * A corpus is a text: an input a line, in hexadecimal; an empty one is "-"; lines that begin with # are comments.
 * At a finding the input is printed as such a line.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "fuzz.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#define LONGEST		4096
#define MADE_UP		600			/* bytes of an input that is no mutation */
#define SECONDS		20			/* of the processor's time, that one input may take */

typedef struct input
{
	uint8_t    *p;
	size_t		len;
} input;

static input *corpus;
static size_t ninputs;
static input now;				/* the one that runs */

static void
print_hex(FILE *f, const input *in)
{
	if (in->len == 0)
		fputc('-', f);
	for (size_t i = 0; i < in->len; i++)
		fprintf(f, "%02x", in->p[i]);
	fputc('\n', f);
}

/* The program ends here, so what a handler must not do does no harm. */
static void
tell_input(void)
{
	static bool told;

	if (told)
		return;
	told = true;
	fprintf(stderr, "not ok - the input:\n");
	print_hex(stderr, &now);
	fflush(stderr);
}

static void
on_signal(int sig)
{
	if (sig == SIGVTALRM)
		fprintf(stderr, "an input takes more than %d s\n", SECONDS);
	tell_input();
	signal(sig, SIG_DFL);
	if (sig == SIGVTALRM)
		_exit(3);
	raise(sig);
}

/* 0: none. */
static void
set_timer(int seconds)
{
	struct itimerval t = {.it_value.tv_sec = seconds};

	(void) setitimer(ITIMER_VIRTUAL, &t, NULL);
}

/* A copy of exactly its length, so that nobody reads on behind it. */
static void
run(const uint8_t *p, size_t len)
{
	uint8_t    *copy = malloc(len ? len : 1);

	memcpy(copy, p, len);
	now = (input) {copy, len};
	set_timer(SECONDS);
	(void) LLVMFuzzerTestOneInput(copy, len);
	set_timer(0);
	free(copy);
}

static void
add_input(const uint8_t *p, size_t len)
{
	corpus = realloc(corpus, (ninputs + 1) * sizeof(*corpus));
	corpus[ninputs].p = malloc(len + 1);
	memcpy(corpus[ninputs].p, p, len);
	corpus[ninputs++].len = len;
}

static void
read_corpus(const char *path)
{
	FILE	   *f = fopen(path, "r");
	char	   *line = NULL;
	size_t		size = 0;
	uint8_t    *p = malloc(LONGEST);

	if (f == NULL)
	{
		perror(path);
		exit(2);
	}
	while (getline(&line, &size, f) > 0)
	{
		size_t		len = 0;
		unsigned	byte;

		if (line[0] == '#' || line[0] == '\n')
			continue;
		while (len < LONGEST && sscanf(line + 2 * len, "%2x", &byte) == 1)
			p[len++] = (uint8_t) byte;
		add_input(p, len);
	}
	fclose(f);
	free(line);
	free(p);
}

/* xorshift64* */
static uint64_t
next_random(uint64_t *s)
{
	uint64_t	x = *s;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*s = x;
	return x * UINT64_C(0x2545F4914F6CDD1D);
}

/* Change an input, which has room for LONGEST, in one place. */
static void
mutate(uint8_t *p, size_t *len, uint64_t *rng)
{
	static const uint8_t some[] = {0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF, 6, 16, 32, 64};
	uint64_t	r = next_random(rng);
	size_t		at = *len ? (r >> 8) % *len : 0;
	size_t		n = (r >> 40) % 16 + 1;

	if (*len == 0 || r % 8 == 0)
	{
		/* some more */
		if (*len + n > LONGEST)
			return;
		memmove(p + at + n, p + at, *len - at);
		for (size_t i = 0; i < n; i++)
			p[at + i] = (uint8_t) next_random(rng);
		*len += n;
		return;
	}
	n = n < *len - at ? n : *len - at;
	switch (r % 8)
	{
		case 1:
			memmove(p + at, p + at + n, *len - at - n);
			*len -= n;
			break;
		case 2:
			p[at] ^= (uint8_t) (1 << ((r >> 56) % 8));
			break;
		case 3:
			p[at] = some[(r >> 56) % sizeof(some)];
			break;
		case 4:
			p[at] = (uint8_t) (p[at] + ((r >> 56) & 1 ? 1 : -1));
			break;
		case 5:
			/* once more */
			if (*len + n > LONGEST)
				break;
			memmove(p + at + n, p + at, *len - at);
			*len += n;
			break;
		case 6:
			{
				/* a piece of another one */
				const input *o = &corpus[(r >> 16) % ninputs];
				size_t		from = o->len ? (r >> 24) % o->len : 0;
				size_t		k = o->len - from < *len - at ? o->len - from : *len - at;

				memcpy(p + at, o->p + from, k);
				break;
			}
		default:
			for (size_t i = 0; i < n; i++)
				p[at + i] = (uint8_t) next_random(rng);
	}
}

static void
run_mutations(long n)
{
	uint64_t	rng = 88172645463325252u;
	uint8_t    *p = malloc(LONGEST);

	if (ninputs == 0)
		add_input((const uint8_t *) "", 0);
	for (long i = 0; i < n; i++)
	{
		const input *of = &corpus[(size_t) i % ninputs];
		size_t		len = of->len;

		memcpy(p, of->p, len);
		if (i % 4 == 3)
		{
			/* of nothing that is there */
			len = next_random(&rng) % MADE_UP;
			for (size_t k = 0; k < len; k++)
				p[k] = (uint8_t) (next_random(&rng) >> (next_random(&rng) % 8));
		}
		for (int k = (int) (next_random(&rng) % 6); k >= 0; k--)
			mutate(p, &len, &rng);
		run(p, len);
	}
	free(p);
}

static input
read_file(const char *path)
{
	FILE	   *f = fopen(path, "rb");
	input		in = {malloc(LONGEST), 0};

	if (f == NULL)
	{
		perror(path);
		exit(2);
	}
	in.len = fread(in.p, 1, LONGEST, f);
	fclose(f);
	return in;
}

static void
expand(const char *dir)
{
	for (size_t i = 0; i < ninputs; i++)
	{
		char		path[4096];
		FILE	   *f;

		snprintf(path, sizeof(path), "%s/corpus-%03zu", dir, i);
		f = fopen(path, "wb");
		if (f == NULL || fwrite(corpus[i].p, 1, corpus[i].len, f) != corpus[i].len)
		{
			perror(path);
			exit(2);
		}
		fclose(f);
	}
}

static int
by_length(const void *a, const void *b)
{
	const input *x = a;
	const input *y = b;

	return x->len != y->len ? (x->len > y->len) - (x->len < y->len) : memcmp(x->p, y->p, x->len);
}

static void
collect(const char *dir)
{
	DIR		   *d = opendir(dir);
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL)
	{
		char		path[4096];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
		{
			input		in = read_file(path);

			add_input(in.p, in.len);
			free(in.p);
		}
	}
	if (d != NULL)
		closedir(d);
	if (ninputs > 0)
		qsort(corpus, ninputs, sizeof(*corpus), by_length);
	for (size_t i = 0; i < ninputs; i++)
		print_hex(stdout, &corpus[i]);
}

int
main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	long		mutations = argc > 2 ? atol(argv[2]) : 0;

	if (argc < 2)
	{
		fprintf(stderr, "usage: %s CORPUS [MUTATIONS] | -r FILE... | -x CORPUS DIRECTORY | -c DIRECTORY\n", name);
		return 2;
	}
	signal(SIGABRT, on_signal);
	signal(SIGVTALRM, on_signal);
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_set_death_callback(tell_input);
#endif
	if (strcmp(argv[1], "-c") == 0 && argc == 3)
		collect(argv[2]);
	else if (strcmp(argv[1], "-x") == 0 && argc == 4)
	{
		read_corpus(argv[2]);
		expand(argv[3]);
	}
	else if (strcmp(argv[1], "-r") == 0)
	{
		for (int i = 2; i < argc; i++)
		{
			input		in = read_file(argv[i]);

			run(in.p, in.len);
			free(in.p);
		}
		printf("ok - %d inputs\n", argc - 2);
	}
	else
	{
		read_corpus(argv[1]);
		for (size_t i = 0; i < ninputs; i++)
			run(corpus[i].p, corpus[i].len);
		run_mutations(mutations);
		printf("ok - fuzz %s, %ld mutations (%zu tests)\n", name, mutations, ninputs);
	}
	return 0;
}
