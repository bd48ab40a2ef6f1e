import type { PrimitiveType } from '../schema/type.ts'
import { valueToBytes } from '../values/binary.ts'
import { viewOf } from '../values/bytes.ts'
import { truncateString } from '../values/transform.ts'
import type { Value } from '../values/value.ts'
import type { MetricsMode } from './metrics-modes.ts'

/** The lower bound of a column whose smallest value is this, or undefined where it has none. */
export function lowerBound(type: PrimitiveType, least: Value, mode: MetricsMode): Uint8Array | undefined {
  if (Number.isNaN(least)) return undefined
  // -0.0 and 0.0 are equal as rows, and which of them a writer calls the least is chance.
  const value = least === 0 ? -0 : least
  if (mode.mode === 'truncate' && typeof value === 'string' && type.type === 'string') {
    return valueToBytes(type, truncateString(value, mode.length))
  }
  if (mode.mode === 'truncate' && value instanceof Uint8Array) return value.slice(0, mode.length)
  return valueToBytes(type, value)
}

/** The upper bound: what is cut must still be above every value, and there may be no such thing. */
export function upperBound(type: PrimitiveType, greatest: Value, mode: MetricsMode): Uint8Array | undefined {
  if (Number.isNaN(greatest)) return undefined
  const value = greatest === 0 ? 0 : greatest
  if (mode.mode === 'truncate' && typeof value === 'string' && type.type === 'string') {
    const cut = truncateString(value, mode.length)
    const above = cut === value ? value : textAbove(cut)
    return above === undefined ? undefined : valueToBytes(type, above)
  }
  if (mode.mode === 'truncate' && value instanceof Uint8Array) {
    return value.length <= mode.length ? value.slice() : bytesAbove(value.subarray(0, mode.length))
  }
  return valueToBytes(type, value)
}

/** The shortest text that is above every text with this beginning; none when all its characters are the last one. */
function textAbove(text: string): string | undefined {
  const codePoints = Array.from(text, (character) => character.codePointAt(0) ?? 0)
  while (codePoints.length > 0) {
    const last = (codePoints.pop() ?? 0) + 1
    // Surrogates are no characters: the one after U+D7FF is U+E000.
    if (last <= 0x10ffff) return String.fromCodePoint(...codePoints, last >= 0xd800 && last <= 0xdfff ? 0xe000 : last)
  }
  return undefined
}

function bytesAbove(bytes: Uint8Array): Uint8Array | undefined {
  const above = Buffer.from(viewOf(bytes))
  for (let end = above.length; end > 0; end -= 1) {
    const last = above[end - 1] ?? 0
    if (last === 0xff) continue
    above[end - 1] = last + 1
    return above.subarray(0, end)
  }
  return undefined
}
