import { z } from 'zod'

// Values that many answers are made of.

/** 32 hexadecimal digits. */
export const id = z.string().regex(/^[0-9a-f]{32}$/)

/** An id as callers may write it: in either case, with dashes or without. */
export const idInput = z
  .string()
  .regex(/^([0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$/, 'give 32 hexadecimal digits')

/** RFC 3339 in UTC. */
export const timestamp = z.iso.datetime()

/** RFC 3339 with its offset, as callers may write it. */
export const timeInput = z.iso.datetime({ offset: true })

export const count = z.int().min(0)

const nullCharacter = String.fromCharCode(0)

/** Text that Postgres can store: no null character, no half of a surrogate pair. */
export const key = z
  .string()
  .min(1)
  .max(512)
  .refine(
    (text) => !text.includes(nullCharacter) && !/\p{Surrogate}/u.test(text),
    'holds a character that cannot be kept',
  )

/** A word by which jobs are found. */
export const tag = key.max(100)

export const name = z.string().regex(/^[a-z][a-z0-9_]{0,62}$/)
export const queueName = z.string().regex(/^[a-z][a-z0-9_.-]{0,62}$/)

/** A whole number in a query string. */
export function queryInteger(min: number, max: number) {
  return z.preprocess(
    (value) => (typeof value === 'string' && /^\d{1,10}$/.test(value) ? Number(value) : value),
    z.int().min(min).max(max),
  )
}
