/*
 * schedule_map.h
 *	  The core's atomic operations as yield points of the scheduler (schedule.h).
 *
 * The flavour "sched" includes this before anything else into each file of the core, and
 * into the providers of elision.  Each operation on an atomic first asks sched_point()
 * whether another thread goes on here.  So does each byte that is read beside a writer,
 * for the flavour is built as for ThreadSanitizer, which reads them one by one
 * (core/base/ax_racy.h).  What is free is told to it as to AddressSanitizer, so an
 * operation on an object that was given back ends the schedule.  A pause is a wait for
 * others.  membarrier() is one step.  Others may also come before and after a copy of more
 * than two words: much that is handed over is copied plainly.
 *
 * A process announces its epoch by a plain store, which its processor may keep to itself
 * for a while.  It does here, too: see sched_store().
 */
#ifndef SCHEDULE_MAP_H
#define SCHEDULE_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <urcu/arch.h>

/* The area of the threads lies here, always: what hangs on an address repeats, too. */
#define SCHED_AREA	UINT64_C(0x200000000000)
#define SCHED_BYTES ((size_t) 4 << 20)

/* Yield points until the scheduler wants to be asked. */
extern int64_t sched_left;

/* By line of 64 bytes of the area: it is free. */
extern uint8_t sched_free[SCHED_BYTES >> 6];

/* Where the announcements lie that are stored plainly. */
extern uintptr_t sched_lazy;
extern size_t sched_lazy_bytes;

/* How many of them are in the buffers of the threads. */
extern int	sched_buffered;

/* It wants to be asked: another thread may go on before this one comes back. */
extern void sched_decide(const char *func, int line);

/* An object is used that was given back: ends the schedule. */
extern void sched_gone(const volatile void *at, const char *func, int line);

/* The thread waits for another one, which is to go on. */
extern void sched_pause(void);

/* In place of membarrier(): everybody's stores are seen. */
extern long sched_syscall(long number,...);

/*
 * A store that is no fence to one of the announcements: it is seen by this thread at
 * once, by others later.  At the latest before its next store, read-modify-write or fence.
 */
extern void sched_store(_Atomic uint64_t *at, uint64_t v);

/* What the thread stored is seen by all from now on. */
extern void sched_flush(void);

/* What this thread itself stored there and others do not see yet? */
extern bool sched_stored(const volatile void *at, uint64_t *v);

/* An operation on an atomic is next. */
static inline void
sched_point(const volatile void *at, const char *func, int line)
{
	size_t		off = (uintptr_t) at - (uintptr_t) SCHED_AREA;

	if (__builtin_expect(--sched_left < 0, 0))
		sched_decide(func, line);
	if (off < SCHED_BYTES && __builtin_expect(sched_free[off >> 6], 0))
		sched_gone(at, func, line);
}

/* The same of one that is seen before anything else that this thread does. */
static inline void
sched_strong(const volatile void *at, const char *func, int line)
{
	sched_point(at, func, line);
	if (__builtin_expect(sched_buffered > 0, 0))
		sched_flush();
}

static inline bool
sched_is_lazy(const volatile void *at, size_t size)
{
	return size == 8 && (uintptr_t) at - sched_lazy < sched_lazy_bytes;
}

#define SCHED_POINT(p)	sched_point((const volatile void *) (p), __func__, __LINE__)
#define SCHED_STRONG(p) sched_strong((const volatile void *) (p), __func__, __LINE__)
#define SCHED_VALUE(p)	__typeof__((void) 0, *(p))

#undef atomic_load_explicit
#undef atomic_load
#undef atomic_store_explicit
#undef atomic_store
#undef atomic_exchange_explicit
#undef atomic_exchange
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_strong
#undef atomic_compare_exchange_weak_explicit
#undef atomic_compare_exchange_weak
#undef atomic_fetch_add_explicit
#undef atomic_fetch_add
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_sub
#undef atomic_fetch_or_explicit
#undef atomic_fetch_or
#undef atomic_fetch_and_explicit
#undef atomic_fetch_and
#undef atomic_thread_fence

#define atomic_load_explicit(p, mo) __extension__ ({ \
	__auto_type sched_p_ = (p); \
	SCHED_VALUE(sched_p_) sched_v_; \
	SCHED_POINT(sched_p_); \
	__atomic_load(sched_p_, &sched_v_, (mo)); \
	if (__builtin_expect(sched_buffered > 0, 0) && sched_is_lazy(sched_p_, sizeof(sched_v_))) \
		(void) sched_stored(sched_p_, (uint64_t *) (void *) &sched_v_); \
	sched_v_; })

#define atomic_store_explicit(p, v, mo) __extension__ ({ \
	__auto_type sched_p_ = (p); \
	SCHED_VALUE(sched_p_) sched_v_ = (v); \
	SCHED_STRONG(sched_p_); \
	if (__builtin_expect(sched_is_lazy(sched_p_, sizeof(sched_v_)), 0) && (mo) != memory_order_seq_cst) \
		sched_store((_Atomic uint64_t *) (uintptr_t) sched_p_, (uint64_t) (uintptr_t) sched_v_); \
	else \
		__atomic_store(sched_p_, &sched_v_, (mo)); })

#define atomic_exchange_explicit(p, v, mo) __extension__ ({ \
	__auto_type sched_p_ = (p); \
	SCHED_VALUE(sched_p_) sched_v_ = (v); \
	SCHED_VALUE(sched_p_) sched_r_; \
	SCHED_STRONG(sched_p_); \
	__atomic_exchange(sched_p_, &sched_v_, &sched_r_, (mo)); \
	sched_r_; })

#define SCHED_CAS(p, e, v, weak, s, f) __extension__ ({ \
	__auto_type sched_p_ = (p); \
	__auto_type sched_e_ = (e); \
	SCHED_VALUE(sched_p_) sched_v_ = (v); \
	SCHED_STRONG(sched_p_); \
	__atomic_compare_exchange(sched_p_, sched_e_, &sched_v_, (weak), (s), (f)); })

/* To add nothing is how a build for ThreadSanitizer validates: elsewhere that is a load. */
#define SCHED_FETCH(op, p, v, mo) __extension__ ({ \
	__auto_type sched_p_ = (p); \
	SCHED_VALUE(sched_p_) sched_v_ = (v); \
	if (sched_v_ == 0) \
		SCHED_POINT(sched_p_); \
	else \
		SCHED_STRONG(sched_p_); \
	__atomic_fetch_##op(sched_p_, sched_v_, (mo)); })

#define atomic_load(p)			atomic_load_explicit((p), memory_order_seq_cst)
#define atomic_store(p, v)		atomic_store_explicit((p), (v), memory_order_seq_cst)
#define atomic_exchange(p, v)	atomic_exchange_explicit((p), (v), memory_order_seq_cst)
#define atomic_compare_exchange_strong_explicit(p, e, v, s, f) SCHED_CAS(p, e, v, false, s, f)
#define atomic_compare_exchange_weak_explicit(p, e, v, s, f) SCHED_CAS(p, e, v, true, s, f)
#define atomic_compare_exchange_strong(p, e, v) \
	SCHED_CAS(p, e, v, false, memory_order_seq_cst, memory_order_seq_cst)
#define atomic_compare_exchange_weak(p, e, v) \
	SCHED_CAS(p, e, v, true, memory_order_seq_cst, memory_order_seq_cst)
#define atomic_fetch_add_explicit(p, v, mo) SCHED_FETCH(add, p, v, mo)
#define atomic_fetch_sub_explicit(p, v, mo) SCHED_FETCH(sub, p, v, mo)
#define atomic_fetch_or_explicit(p, v, mo) SCHED_FETCH(or, p, v, mo)
#define atomic_fetch_and_explicit(p, v, mo) SCHED_FETCH(and, p, v, mo)
#define atomic_fetch_add(p, v)	SCHED_FETCH(add, p, v, memory_order_seq_cst)
#define atomic_fetch_sub(p, v)	SCHED_FETCH(sub, p, v, memory_order_seq_cst)
#define atomic_fetch_or(p, v)	SCHED_FETCH(or, p, v, memory_order_seq_cst)
#define atomic_fetch_and(p, v)	SCHED_FETCH(and, p, v, memory_order_seq_cst)

#define atomic_thread_fence(mo) \
	((mo) == memory_order_seq_cst && sched_buffered > 0 ? sched_flush() : (void) 0)

#define __atomic_load_n(p, mo)	(SCHED_POINT(p), __atomic_load_n((p), (mo)))
#define __atomic_store_n(p, v, mo) (SCHED_STRONG(p), __atomic_store_n((p), (v), (mo)))

/* Bytes are copied: a step, if they are many. */
static inline void
sched_copy(size_t n, const char *func, int line)
{
	sched_left -= n > 16;
	if (__builtin_expect(sched_left < 0, 0))
		sched_decide(func, line);
}

#define SCHED_COPY(f, to, from, n) __extension__ ({ \
	const size_t sched_n_ = (n); \
	sched_copy(sched_n_, __func__, __LINE__); \
	f((to), (from), sched_n_); \
	sched_copy(sched_n_, __func__, __LINE__); })

#define memcpy(to, from, n)		SCHED_COPY(memcpy, to, from, n)
#define memmove(to, from, n)	SCHED_COPY(memmove, to, from, n)
#define memset(to, c, n)		SCHED_COPY(memset, to, c, n)

#undef caa_cpu_relax
#define caa_cpu_relax()	sched_pause()
#define syscall			sched_syscall

#endif							/* SCHEDULE_MAP_H */
