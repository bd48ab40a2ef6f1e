import { storableText } from '../check.ts'

/** Where an error was thrown, and what caused it. Kept in the event of the failure, and nowhere else. */
export interface ErrorDetails {
  stack?: string
  causes?: { error: string; stack?: string }[]
}

export const errorLimits = { stack: 8_000, causes: 5, causeMessage: 1_000, causeStack: 2_000 } as const

/** The stack of an error and its causes, the nearest first; undefined for what is no error. */
export function errorDetails(error: unknown): ErrorDetails | undefined {
  if (!(error instanceof Error)) return undefined
  const causes = causesOf(error).map((cause) => {
    const text = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause)
    return { error: storableText(text, errorLimits.causeMessage), ...stackOf(cause, errorLimits.causeStack) }
  })
  return { ...stackOf(error, errorLimits.stack), ...(causes.length > 0 ? { causes } : {}) }
}

function stackOf(error: unknown, maxLength: number): { stack?: string } {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return {}
  return { stack: storableText(error.stack, maxLength) }
}

// The depth is bounded, so an error that is its own cause ends too.
function causesOf(error: Error): unknown[] {
  const causes: unknown[] = []
  const next: unknown[] = [error]
  while (next.length > 0 && causes.length < errorLimits.causes) {
    const one = next.shift()
    if (one !== error) causes.push(one)
    if (!(one instanceof Error)) continue
    if (one instanceof AggregateError) next.push(...(one.errors as unknown[]).slice(0, errorLimits.causes))
    if (one.cause !== undefined && one.cause !== null && one.cause !== error) next.push(one.cause)
  }
  return causes
}
