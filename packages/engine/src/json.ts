import { FencepostError } from './errors.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

// What JSON allows and jsonb does not: the null character, and halves of surrogate pairs.
const notStorable = /\\u0000|\\u[dD][89abAB][0-9a-fA-F]{2}|\\u[dD][c-fC-F][0-9a-fA-F]{2}/

/** The JSON text of a value, refused here if Postgres could not store it or it is too large. */
export function encodeJson(value: unknown, what: string, maxBytes: number): string {
  let text: string | undefined
  try {
    text = JSON.stringify(value ?? null)
  } catch (error) {
    throw new FencepostError('json_invalid', `${what} cannot be written as JSON: ${(error as Error).message}.`, {
      cause: error,
    })
  }
  if (text === undefined) {
    throw new FencepostError('json_invalid', `${what} cannot be written as JSON: it is a ${typeof value}.`)
  }
  const escape = unescapedMatch(text)
  if (escape !== undefined) {
    throw new FencepostError(
      'json_invalid',
      `${what} holds the character ${escape}, which Postgres cannot store in JSON. Remove or encode it.`,
    )
  }
  const bytes = Buffer.byteLength(text)
  if (bytes > maxBytes) {
    throw new FencepostError(
      'json_too_large',
      `${what} is ${bytes} bytes as JSON; the limit is ${maxBytes}. Store it elsewhere and pass a reference.`,
      { details: { bytes, maxBytes } },
    )
  }
  return text
}

// '\\u0000' in JSON text may be an escaped backslash followed by 'u0000': only an odd run of backslashes escapes.
function unescapedMatch(text: string): string | undefined {
  if (!notStorable.test(text)) return undefined
  for (const match of text.matchAll(/(\\+)u([0-9a-fA-F]{4})/g)) {
    const [, slashes = '', digits = ''] = match
    if (slashes.length % 2 === 1 && notStorable.test(`\\u${digits}`)) return `\\u${digits}`
  }
  return undefined
}
