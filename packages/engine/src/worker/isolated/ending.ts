import { storableText } from '../../check.ts'
import type { Outcome } from '../../attempt/settle.ts'

/** How a handler process ended that should have gone on. */
export interface Ending {
  code: number | null
  signal: NodeJS.Signals | null
  /** The last that it wrote to stderr while it ran this attempt. */
  stderr: string
  maxMemoryMb: number | undefined
}

/** How much of stderr is kept: what V8 writes when it runs out of memory must fit in. */
export const keptStderrLength = 16_384
const quotedLength = 2_000
const outOfMemory = /(FATAL ERROR|Fatal process|Fatal JavaScript)[^\n]*out of memory/i
const exitedByAbort = 134 // 128 + SIGABRT, where a shell stands in between

/** What the attempt came to whose process has ended: a failure that names the reason, retried like any other. */
export function outcomeOfEnding(ending: Ending): Outcome {
  const { errorCode, error } = describe(ending)
  const words = ending.stderr.trim().slice(-quotedLength)
  const message = words === '' ? error : `${error} The end of its stderr:\n${words}`
  return { kind: 'failed', error: storableText(message), errorCode, permanent: false, steps: [] }
}

function describe({ code, signal, stderr, maxMemoryMb }: Ending): { errorCode: string; error: string } {
  if ((signal === 'SIGABRT' || code === exitedByAbort) && outOfMemory.test(stderr)) {
    const limit = maxMemoryMb === undefined ? '' : ` (maxMemoryMb is ${maxMemoryMb})`
    return { errorCode: 'handler_out_of_memory', error: `The handler process ran out of memory${limit}.` }
  }
  if (signal !== null) {
    const hint = signal === 'SIGKILL' ? ', as the system does when memory is short' : ''
    return { errorCode: 'handler_crashed', error: `The handler process was ended by ${signal}${hint}.` }
  }
  return {
    errorCode: 'handler_exited',
    error: `The handler process exited with code ${code ?? 'unknown'} before its handler had ended.`,
  }
}
