import { utimes } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expireSnapshots, writeDataFiles, type ContentFile, type Row } from '@fencepost/iceberg'
import { beginTable, columns, dayMs, hourMs, micros, scaled, type LakeTable, type Making } from './lake-table.ts'
import type { Seeded } from './seeded.ts'

const actors = ['svc-billing', 'svc-deploy', 'a.lovelace', 'g.hopper', 'l.torvalds', 'oncall'] as const
const deeds = ['login', 'login_failed', 'token_created', 'role_granted', 'secret_read', 'table_dropped'] as const
const targets = ['prod/payments', 'prod/lake', 'staging/lake', 'vault/kv', 'iam/role/admin'] as const
const entriesPerDay = 40
const orphanAgeDays = 9

/** A batch a day without merging, so that every file has a manifest of its own; and files of batches that failed. */
export const auditLog: LakeTable = {
  namespace: 'ops',
  name: 'audit_log',
  story: 'a batch a day: a manifest for each, and files of batches that failed long ago',
  make: async (making) => {
    const { nowMs, scale, signal } = making
    const days = scaled(300, scale, 20)
    const begin = Math.floor(nowMs / dayMs) * dayMs - days * dayMs
    const { table, catalog, random, at } = await beginTable(making, auditLog, begin, {
      schema: {
        fields: columns({
          logged_at: 'timestamptz',
          actor: 'string',
          deed: 'string',
          target: 'string',
          'address?': 'string',
          succeeded: 'boolean',
        }),
      },
      partitionSpec: { fields: [{ fieldId: 1000, sourceId: 1, name: 'day', transform: { name: 'day' } }] },
      properties: {
        'commit.manifest-merge.enabled': 'false',
        comment: 'Who did what, kept for the auditors.',
      },
    })
    const rows = Array.from({ length: days * entriesPerDay }, (_, number) =>
      entry(random, begin + (number * dayMs) / entriesPerDay),
    )
    const files = await writeDataFiles(making.duckDb, table.loaded, rows, { signal })
    for (const [day, file] of files.entries()) {
      signal?.throwIfAborted()
      at(begin + (day + 1) * dayMs + hourMs)
      await table.appendFiles([file])
      making.onProgress((day + 1) / (days + 1))
    }
    await writeOrphans(making, random, scaled(48, scale, 4), async (lost) => {
      return await writeDataFiles(making.duckDb, table.loaded, lost, { signal })
    })
    // Snapshots are looked after here: it is the manifests that nobody looks after.
    const now = new Date(nowMs)
    await expireSnapshots(
      table.loaded,
      { now, countFiles: false },
      { catalog, ...(signal !== undefined && { signal }) },
    )
    await table.refresh()
    return table
  },
}

/** What a batch leaves that dies between its files and its commit. */
async function writeOrphans(
  { nowMs, storage }: Making,
  random: Seeded,
  count: number,
  write: (rows: Row[]) => Promise<ContentFile[]>,
): Promise<void> {
  const from = Math.floor(nowMs / dayMs) * dayMs - (orphanAgeDays + count) * dayMs
  const rows = Array.from({ length: count * entriesPerDay }, (_, number) =>
    entry(random, from + (number * dayMs) / entriesPerDay),
  )
  for (const { filePath } of await write(rows)) {
    const path = storage.localPath?.(filePath) ?? (filePath.startsWith('file:') ? fileURLToPath(filePath) : filePath)
    const writtenAt = new Date(nowMs - orphanAgeDays * dayMs)
    await utimes(path, writtenAt, writtenAt)
  }
}

function entry(random: Seeded, ms: number): Row {
  return {
    logged_at: micros(ms),
    actor: random.pick(actors),
    deed: random.pick(deeds),
    target: random.pick(targets),
    address: random.below(4) === 0 ? null : `10.${random.below(4)}.${random.below(256)}.${random.below(256)}`,
    succeeded: random.below(12) !== 0,
  }
}
