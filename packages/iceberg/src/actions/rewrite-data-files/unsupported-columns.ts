import { tableName, type LoadedTable } from '../../catalogs/catalog.ts'
import { IcebergError } from '../../errors.ts'
import { schemaOf } from '../../metadata/table-metadata.ts'
import { assertWritableColumns } from '../../parquet/write-types.ts'
import { assertReadable } from '../../scan/projection.ts'

/** Why the table's columns cannot be read and written exactly; undefined when they can. */
export function unsupportedColumns({ metadata, identifier }: LoadedTable): IcebergError | undefined {
  const schema = schemaOf(metadata)
  try {
    assertReadable(schema.fields, tableName(identifier))
    assertWritableColumns(schema, tableName(identifier))
    return undefined
  } catch (error) {
    if (error instanceof IcebergError) return error
    throw error
  }
}
