import { BOOLEAN, DuckDBScalarFunction, INTEGER, UBIGINT, type DuckDBConnection } from '@duckdb/node-api'
import { IcebergError } from '../../errors.ts'
import { explained, sqlName, type DuckDb } from '../../parquet/duckdb.ts'
import { parquetTable } from '../../parquet/parquet-table.ts'
import { childrenOf } from '../../schema/schema.ts'
import { isNested, type Field, type Type } from '../../schema/type.ts'

// A file is proved to hold the rows that were read for it: as many, and with the same sum and exclusive or of their
// hashes, whatever their order. What is read is counted on its way into the writer, so that only what was written is
// read once more. Not seen by it: two rows whose hashes are equal, and which NaN a NaN is.

/** What a set of rows comes to. */
export interface RowTally {
  readonly rows: bigint
  readonly sum: bigint
  readonly xor: bigint
}

const functionName = 'fencepost_tally'

/** Counts rows while DuckDB hands them on. One for each DuckDB. */
export class RowTallies {
  readonly #tallies = new Map<number, { rows: bigint; sum: bigint; xor: bigint }>()
  #next = 0

  static async on(duckdb: DuckDb): Promise<RowTallies> {
    const tallies = new RowTallies()
    await duckdb.using(async (connection) => {
      connection.registerScalarFunction(
        DuckDBScalarFunction.create({
          name: functionName,
          parameterTypes: [INTEGER, UBIGINT],
          returnType: BOOLEAN,
          // Else DuckDB would call it once for rows that are alike.
          volatile: true,
          mainFunction: (_, input, output) => {
            const hashes = input.getColumnVector(1) as unknown as { readonly items: BigUint64Array }
            tallies.#add(Number(input.getColumnVector(0).getItem(0)), hashes.items.subarray(0, input.rowCount))
            for (let row = 0; row < input.rowCount; row += 1) output.setItem(row, true)
            output.flush()
          },
        }),
      )
    })
    return tallies
  }

  /** A count that begins at nothing. */
  open(): number {
    this.#next += 1
    this.restart(this.#next)
    return this.#next
  }

  /** Forgets what was counted: the same rows are read again. */
  restart(tally: number): void {
    this.#tallies.set(tally, { rows: 0n, sum: 0n, xor: 0n })
  }

  /** What was counted; the count is closed. */
  close(tally: number): RowTally {
    const counted = this.#tallies.get(tally) ?? { rows: 0n, sum: 0n, xor: 0n }
    this.#tallies.delete(tally)
    return counted
  }

  /** The columns of `from` as they are. Whoever reads a row of them has it counted. */
  counted(tally: number, fields: readonly Field[], from: string, withHashes: boolean): string {
    const [first, ...others] = fields.map((field) => sqlName(field.name))
    const hash = withHashes ? rowHash(fields, (_, field) => sqlName(field.name)) : '0::ubigint'
    // In a column and not in a condition, which DuckDB would test before rows are deleted.
    const column = `case when ${functionName}(${tally}, ${hash}) then ${first} end as ${first}`
    return `select ${[column, ...others].join(', ')} from (${from})`
  }

  #add(tally: number, hashes: BigUint64Array): void {
    const counted = this.#tallies.get(tally)
    if (counted === undefined) return
    const halves = new Uint32Array(hashes.buffer, hashes.byteOffset, hashes.length * 2)
    let [low, high, lowXor, highXor] = [0, 0, 0, 0]
    for (let at = 0; at < halves.length; at += 2) {
      const [l = 0, h = 0] = [halves[at], halves[at + 1]]
      low += l
      high += h
      lowXor ^= l
      highXor ^= h
    }
    counted.rows += BigInt(hashes.length)
    counted.sum += BigInt(low) + (BigInt(high) << 32n)
    counted.xor ^= BigInt(lowXor >>> 0) | (BigInt(highXor >>> 0) << 32n)
  }
}

/** A hash of exactly the values of a row, as SQL. */
function rowHash(fields: readonly Field[], nameOf: (index: number, field: Field) => string): string {
  return `hash(${fields.flatMap((field, index) => hashed(field.type, nameOf(index, field))).join(', ')})`
}

/** DuckDB's own hash takes both zeros for one, and so it does a list that is null, one that is empty and one of a null. */
function hashed(type: Type, value: string): string[] {
  if (isNested(type)) return hasValues(type) ? [value, `${value}::varchar`] : [`${value}::varchar`]
  return type.type === 'float' || type.type === 'double' ? [value, `signbit(${value})`] : [value]
}

function hasValues(type: Type): boolean {
  return childrenOf(type).length > 0
}

/** Reads local files of these columns, and what their rows come to. */
export async function tallyOf(
  connection: DuckDBConnection,
  path: string,
  fields: readonly Field[],
  withHashes: boolean,
): Promise<RowTally> {
  const hash = withHashes ? rowHash(fields, (index) => `p${index}`) : '0::ubigint'
  const sql = `select count(*), sum(h::hugeint)::varchar, bit_xor(h)::varchar from (select ${hash} as h from ${parquetTable(path, fields.length)})`
  const [rows, sum, xor] = (await explained(connection.runAndReadAll(sql))).getRows()[0] ?? []
  return {
    rows: BigInt(rows as bigint),
    sum: BigInt((sum as string | null) ?? 0),
    xor: BigInt((xor as string | null) ?? 0),
  }
}

/** Refuses a file that does not hold what was read for it. */
export function assertSameRows(read: RowTally, written: RowTally, what: { table: string; file: string }): void {
  if (read.rows === written.rows && read.sum === written.sum && read.xor === written.xor) return
  const differ = read.rows === written.rows ? 'other values than' : `${written.rows} rows, not`
  throw new IcebergError(
    'proof_failed',
    `${what.file} was written for ${what.table} and has ${differ} the ${read.rows} rows that were read. It is removed, and the table is as it was. Report this: keep the files that were to be rewritten.`,
    { details: { ...what, read: textOf(read), written: textOf(written) } },
  )
}

function textOf({ rows, sum, xor }: RowTally): Record<string, string> {
  return { rows: String(rows), sum: String(sum), xor: String(xor) }
}
