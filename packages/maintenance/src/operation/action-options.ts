import { rewriteDataFilesOptions, rewritePositionDeletesOptions, type OptionDefinition } from '@fencepost/iceberg'
import { z } from 'zod'

/*
 * What a request may say about each action. The options of the two rewrites of files are those of Spark's procedures, by
 * the names that those have; the others are the procedures' arguments.
 */

export const actionNames = [
  'rewrite_data_files',
  'rewrite_position_delete_files',
  'rewrite_manifests',
  'expire_snapshots',
  'remove_orphan_files',
] as const
export type ActionName = (typeof actionNames)[number]

/** The actions of a request once each, in the order in which they run. */
export function inOrder(actions: readonly ActionName[]): ActionName[] {
  return actionNames.filter((name) => actions.includes(name))
}

type Definitions = Readonly<Record<string, OptionDefinition<unknown> | undefined>>
const definitions: Definitions = rewriteDataFilesOptions

/** A value as Spark takes it: also as text. */
function spark(name: string) {
  const definition = definitions[name]
  const value = z.union([z.string().max(100), z.number(), z.boolean()])
  if (definition === undefined) return value.optional()
  return value
    .refine((given) => definition.parse(String(given)) !== undefined, { message: `allowed is ${definition.allowed}` })
    .optional()
}

const sparkOptions = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, spark(name)]))
const olderThan = z.iso.datetime({ offset: true }).optional().describe('RFC 3339.')

export const actionOptions = z.strictObject({
  rewrite_data_files: z
    .strictObject({
      ...sparkOptions(Object.keys(rewriteDataFilesOptions)),
      strategy: z.enum(['binpack', 'sort', 'zorder']).optional(),
      sort_order: z.string().min(1).max(1000).optional(),
    })
    .optional(),
  rewrite_position_delete_files: z.strictObject(sparkOptions(rewritePositionDeletesOptions)).optional(),
  rewrite_manifests: z.strictObject({ spec_id: z.int().min(0).optional() }).optional(),
  expire_snapshots: z
    .strictObject({
      older_than: olderThan,
      retain_last: z.int().min(1).optional(),
      clean_expired_metadata: z.boolean().optional(),
      writer_progress_ms: z.int().min(0).optional(),
    })
    .optional(),
  remove_orphan_files: z
    .strictObject({
      older_than: olderThan,
      prefix_mismatch_mode: z.enum(['error', 'ignore', 'delete']).optional(),
      max_orphan_share: z.number().min(0).max(1).optional(),
      confirm_share: z.boolean().optional(),
      quarantine: z.boolean().optional(),
    })
    .optional(),
})
export type ActionOptions = z.output<typeof actionOptions>
