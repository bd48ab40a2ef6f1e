import { expect } from 'vitest'
import {
  executeRewriteDataFiles,
  planRewriteDataFiles,
  type ActionRun,
  type Catalog,
  type ManifestEntry,
  type RewriteDataFilesPlan,
  type RewriteDataFilesRequest,
  type RewriteDataFilesResult,
  type Table,
} from '../../src/index.ts'
import { entriesOf } from '../write/bed.ts'

export interface Rewritten {
  readonly plan: RewriteDataFilesPlan
  readonly result: RewriteDataFilesResult
}

/** Plans, carries the plan out as it comes back from JSON, and refreshes the table. */
export async function rewrite(
  catalog: Catalog,
  table: Table,
  request: RewriteDataFilesRequest = {},
  run: Partial<ActionRun> = {},
): Promise<Rewritten> {
  await table.refresh()
  const plan = await planRewriteDataFiles(table.loaded, request)
  expect(JSON.parse(JSON.stringify(plan))).toEqual(plan)
  try {
    const result = await executeRewriteDataFiles(table.loaded, plan, { catalog, ...run })
    return { plan, result }
  } finally {
    await table.refresh()
  }
}

export async function dataFiles(table: Table): Promise<ManifestEntry[]> {
  return (await entriesOf(table)).filter(({ file }) => file.content === 'data')
}

export async function deleteFiles(table: Table): Promise<ManifestEntry[]> {
  return (await entriesOf(table)).filter(({ file }) => file.content !== 'data')
}

/** Does something before the n-th commit of a run, once. */
export function before(n: number, what: () => Promise<unknown>): NonNullable<ActionRun['guard']> {
  let commits = 0
  return async () => {
    commits += 1
    if (commits === n) await what()
  }
}
