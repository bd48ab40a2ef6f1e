import { IcebergError } from '../../errors.ts'
import type { ContentFile } from '../../manifests/content-file.ts'
import type { ScanFile } from '../../scan/plan.ts'
import { removeFiles } from '../../write/remove-files.ts'
import { copyFiles } from './copy-files.ts'
import { encodeGroup } from './encode.ts'
import type { EncodeContext } from './row-source.ts'
import { unsupportedColumns } from './unsupported-columns.ts'

export interface GroupResult {
  readonly added: readonly ContentFile[]
  /** The files whose rows are in the new ones. */
  readonly files: readonly ScanFile[]
  /** Files that stay as they are, and why. */
  readonly left?: { readonly files: readonly ScanFile[]; readonly error: IcebergError }
}

/** Rewrites a group: what can be is copied byte by byte, the rest is encoded. */
export async function rewriteGroup(context: EncodeContext, files: readonly ScanFile[]): Promise<GroupResult> {
  const { table } = context
  const unsupported = unsupportedColumns(table)
  const { added, rest } = context.copies
    ? await copyFiles(context, files, unsupported === undefined)
    : { added: [], rest: files }
  if (rest.length === 0) return { added, files }
  if (unsupported !== undefined && added.length > 0) {
    const left = new Set(rest)
    return { added, files: files.filter((file) => !left.has(file)), left: { files: rest, error: unsupported } }
  }
  try {
    if (unsupported !== undefined) throw unsupported
    return { added: [...added, ...(await encodeGroup(context, rest))], files }
  } catch (error) {
    await removeFiles(table, added)
    throw error
  }
}
