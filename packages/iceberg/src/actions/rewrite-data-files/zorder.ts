import { IcebergError } from '../../errors.ts'
import { typeName, type PrimitiveType } from '../../schema/type.ts'
import type { KeySource } from './distinct-keys.ts'

// As in Spark, every column becomes 8 bytes that sort as its values do, and the bits of all columns take turns, the
// highest first. Rows that are near each other in all columns come near each other. Nulls are zeros.

const wordBits = 64

/** Expressions of SQL over the columns of `zorderColumns` in the rows `r`, to sort by one after the other. */
export function zorderWords(
  sources: readonly KeySource[],
  limits: { readonly varLengthBytes: number; readonly maxBytes: number },
): string[] {
  const lengths = sources.map(({ type }) => bitsOf(type, limits.varLengthBytes))
  const total = Math.min(
    limits.maxBytes * 8,
    lengths.reduce((sum, length) => sum + length, 0),
  )
  const words: string[][] = []
  let at = 0
  for (let bit = 0; bit < wordBits && at < total; bit += 1) {
    for (const [column, length] of lengths.entries()) {
      if (bit >= length || at >= total) continue
      const [word, place] = [Math.floor(at / wordBits), wordBits - 1 - (at % wordBits)]
      words[word] ??= []
      words[word].push(`(((r.${columnName(column)} >> ${wordBits - 1 - bit}) & 1) << ${place})`)
      at += 1
    }
  }
  return words.map((bits) => bits.join(' | '))
}

/** A column for each source: 64 bits that sort as the values do. */
export function zorderColumns(sources: readonly KeySource[]): string[] {
  return sources.map((source, index) => `coalesce(${orderedBits(source)}, 0::ubigint) as ${columnName(index)}`)
}

/** Beside the columns of the table: a name that those will not have. */
function columnName(index: number): string {
  return `_zorder_${index}`
}

function bitsOf({ type }: PrimitiveType, varLengthBytes: number): number {
  return type === 'string' || type === 'binary' ? Math.min(wordBits, varLengthBytes * 8) : wordBits
}

function orderedBits({ sql, type }: KeySource): string {
  const signed = (value: string): string => `(${value}::hugeint + 9223372036854775808)::ubigint`
  const firstBytes = (bytes: string): string => `('0x' || rpad(left(hex(${bytes}), 16), 16, '0'))::ubigint`
  switch (type.type) {
    case 'int':
    case 'long':
      return signed(sql)
    case 'date':
      return signed(`(${sql} - date '1970-01-01')`)
    case 'timestamp':
    case 'timestamptz':
      return signed(`epoch_us(${sql})`)
    case 'timestamp_ns':
      return signed(`epoch_ns(${sql})`)
    case 'float':
    case 'double': {
      const bits = `cast(cast(${sql}::double as bit) as ubigint)`
      return `case when ${sql} is null then null when signbit(${sql}) then xor(${bits}, 18446744073709551615::ubigint) else ${bits} | 9223372036854775808::ubigint end`
    }
    case 'string':
      return firstBytes(`encode(${sql})`)
    case 'binary':
      return firstBytes(sql)
    case 'boolean':
      return `case when ${sql} then 9331882296111890817::ubigint else 0::ubigint end`
    default:
      throw new IcebergError('action_refused', `Rows cannot be z-ordered by a column of type ${typeName(type)}.`)
  }
}
