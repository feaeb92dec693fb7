/*
 * server.h
 *	  What the files under test want of a server, without one: memory contexts and errors.
 *
 * All memory comes from malloc(), an allocation each, so the address sanitizer knows its end.
 */
#ifndef FUZZ_SERVER_H
#define FUZZ_SERVER_H

#include "postgres.h"

#include <setjmp.h>

#include "fuzz.h"

/* The SQLSTATE of the error that ended the last fuzz_try(); 0: none. */
extern int	fuzz_sqlstate;

/* Where an error goes to; NULL: it is a finding. */
extern sigjmp_buf *fuzz_catch;

/*
 * Run a statement; true if no error came.  What it has changed of the function's own variables
 * is lost if one did.
 */
#define FUZZ_TRY(statement) \
	({ \
		sigjmp_buf	fuzz_here; \
		bool		fuzz_good = false; \
		fuzz_sqlstate = 0; \
		fuzz_catch = &fuzz_here; \
		if (sigsetjmp(fuzz_here, 0) == 0) \
		{ \
			statement; \
			fuzz_good = true; \
		} \
		fuzz_catch = NULL; \
		fuzz_good; \
	})

/* At an input's begin: all memory of the one before is freed. */
extern void fuzz_server_reset(void);

#endif							/* FUZZ_SERVER_H */
