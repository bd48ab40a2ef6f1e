import { z } from 'zod'
import { key, timestamp } from './values.ts'

/** What a token may do: viewers read; operators submit, cancel, recover and delete too; admins do everything. */
export const roles = ['viewer', 'operator', 'admin'] as const
export const role = z.enum(roles)
export type Role = z.output<typeof role>

/** True when `having` may do what asks for `needed`. */
export function allows(having: Role, needed: Role): boolean {
  return roles.indexOf(having) >= roles.indexOf(needed)
}

export const token = z.object({
  token_id: z.string().regex(/^[0-9a-f]{12}$/),
  name: z.string().describe('Who uses it; recorded as `by` in the events of what it changes.'),
  role,
  created_at: timestamp,
  created_by: z.string().nullable(),
  last_used_at: timestamp.nullable().describe('Written at most once a minute.'),
  expires_at: timestamp.nullable().describe('From then on it is refused; null for one that does not expire.'),
  revoked_at: timestamp.nullable(),
  revoked_by: z.string().nullable(),
})
export type Token = z.output<typeof token>

const tenYears = 315_360_000

export const newToken = z.strictObject({
  name: key.max(100).describe('One token in use has it.'),
  role,
  expires_in_seconds: z
    .int()
    .min(1)
    .max(tenYears)
    .optional()
    .describe('How long it may be used; for ever if left out.'),
})
export type NewToken = z.input<typeof newToken>

export const createdToken = token.extend({
  token: z
    .string()
    .regex(/^fp_[0-9a-f]{12}_[A-Za-z0-9_-]{43}$/)
    .describe('Shown this once.'),
})
export type CreatedToken = z.output<typeof createdToken>
