/** A number that JavaScript cannot hold as it is written, and where it is. */
export interface InexactNumber {
  path: string
  text: string
}

// Only such numbers can be inexact, and most bodies have none; in a text, digits cost no more than a closer look.
const suspicious = /\d{16}|\d\.\d{15}|[eE][+-]?\d{3}/
const tokens = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[[\]{},:]/g

/**
 * The first number of a valid JSON text that would change: too large for a number, or a whole number past 2^53 that is not
 * exactly one. Fractions are read as doubles, which everybody expects, and refused only when nothing is left of them.
 */
export function inexactNumber(json: string): InexactNumber | undefined {
  if (!suspicious.test(json)) return undefined
  const path: (string | number)[] = []
  let text: string | undefined
  for (const [token] of json.matchAll(tokens)) {
    const last = path.length - 1
    if (token === '[') path.push(0)
    else if (token === '{') path.push('')
    else if (token === ']' || token === '}') path.pop()
    else if (token === ',' && typeof path[last] === 'number') path[last] += 1
    else if (token === ':') path[last] = JSON.parse(text ?? '""') as string
    else if (token.startsWith('"')) text = token
    else if (token !== ',' && !survives(token)) return { path: path.join('.'), text: token }
  }
  return undefined
}

function survives(token: string): boolean {
  const value = Number(token)
  if (!Number.isFinite(value)) return false
  if (value === 0) return !/^-?[\d.]*[1-9]/.test(token)
  return Math.abs(value) <= Number.MAX_SAFE_INTEGER || significant(token) === significant(String(value))
}

/** The digits of a number without the zeros around them, and the power of ten of the first. */
function significant(token: string): string {
  const [, whole = '', fraction = '', exponent = '0'] = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(token) ?? []
  const digits = whole + fraction
  const leading = /^0*/.exec(digits)?.[0].length ?? 0
  return `${digits.replaceAll(/^0+|0+$/g, '')} ${whole.length - leading + Number(exponent)}`
}
