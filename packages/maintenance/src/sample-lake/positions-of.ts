import type { Filter, Table } from '@fencepost/iceberg'

/** Where the rows that a filter picks are: their positions by file, in the order of the names of the files. */
export async function positionsOf(table: Table, filter: Filter): Promise<Map<string, number[]>> {
  const positions = new Map<string, number[]>()
  for await (const rows of table.scan({ columns: [], filter, metadataColumns: ['_file', '_pos'] })) {
    for (const { _file: path, _pos: position } of rows) {
      if (typeof path !== 'string') continue
      const ofFile = positions.get(path)
      if (ofFile === undefined) positions.set(path, [Number(position)])
      else ofFile.push(Number(position))
    }
  }
  return new Map([...positions].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
