import { ApiError } from '../error.ts'
import { inexactNumber } from './inexact-number.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The value of a JSON body. Undefined for an empty one: whether a body is needed, its schema says. */
export function parseJsonBody(bytes: Buffer, maxDepth: number): unknown {
  if (bytes.length === 0) return undefined
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch (error) {
    throw new ApiError('json_malformed', 'The body is not valid UTF-8.', { cause: error })
  }
  // Before parsing: what is written as JSON again, here or in Postgres, is written recursively.
  if (depthOf(text, maxDepth) > maxDepth) {
    throw new ApiError('json_too_deep', `The body is nested more than ${maxDepth} levels deep.`, {
      details: { max_depth: maxDepth },
    })
  }
  const value = parse(text)
  const inexact = inexactNumber(text)
  if (inexact === undefined) return value
  const message = `${inexact.text.slice(0, 64)} would be changed: no number of JavaScript is equal to it; give it as a string`
  const issue = { path: `body.${inexact.path}`.slice(0, 200), message }
  throw new ApiError('request_invalid', `The request is not valid: ${issue.path}: ${message}.`, {
    details: { issues: [issue] },
  })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw new ApiError('json_malformed', 'The body is not valid JSON.', { cause: error })
  }
}

/** How deep arrays and objects are nested; stops counting past the limit. */
function depthOf(text: string, limit: number): number {
  let depth = 0
  let deepest = 0
  let quoted = false
  for (let at = 0; at < text.length && deepest <= limit; at += 1) {
    const char = text[at]
    if (quoted) {
      if (char === '\\') at += 1
      else if (char === '"') quoted = false
    } else if (char === '"') quoted = true
    else if (char === '{' || char === '[') deepest = Math.max(deepest, (depth += 1))
    else if (char === '}' || char === ']') depth -= 1
  }
  return deepest
}
