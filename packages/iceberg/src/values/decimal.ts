import { IcebergError } from '../errors.ts'

/** The text of an unscaled value: 1420 at scale 2 is "14.20". */
export function formatDecimal(unscaled: bigint, scale: number): string {
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0')
  const sign = unscaled < 0n ? '-' : ''
  return scale === 0 ? sign + digits : `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

/** The unscaled value of a text, which must be exact at this scale. Scientific notation is accepted. */
export function parseDecimal(text: string, scale: number): bigint {
  const [, sign, whole = '', fraction = '', exponent = '0'] =
    /^([+-]?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  const shift = scale - fraction.length + Number(exponent)
  if (whole === '' || Math.abs(shift) > 1000) throw new IcebergError('value_invalid', `"${text}" is not a decimal`)
  const digits = BigInt(whole + fraction)
  const divisor = 10n ** BigInt(Math.max(0, -shift))
  if (digits % divisor !== 0n) throw new IcebergError('value_invalid', `"${text}" has more than ${scale} decimals`)
  const unscaled = shift >= 0 ? digits * 10n ** BigInt(shift) : digits / divisor
  return sign === '-' ? -unscaled : unscaled
}
