import { z } from 'zod'

/** Which embeddings: words of how many residues, hashed into how many dimensions. */
export const model = z.strictObject({
  k: z.int().min(1).max(6).default(3),
  dimensions: z.int().min(16).max(4096).default(512),
})

/** The troubles of a real machine, which a sample would not have by itself. */
export const simulate = z.strictObject({
  /** How long the device takes for a batch. */
  device_ms: z.int().min(0).default(0),
  /** Every third batch finds the device out of memory, the first time. */
  device_errors: z.boolean().default(false),
  /** How long the rows of a batch are written and not yet committed. */
  write_ms: z.int().min(0).default(0),
  /** Every other batch loses its connection before the commit, the first time. */
  write_errors: z.boolean().default(false),
})

/** When a parent fails for its children. */
export const failWhen = z
  .union([z.enum(['any', 'all']), z.strictObject({ ratio: z.number().min(0).max(1) })])
  .default('any')
