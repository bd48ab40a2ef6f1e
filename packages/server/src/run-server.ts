import { stopOnSignals } from '@fencepost/engine'
import { openServer, type Server } from './open-server.ts'
import type { ServerOptions } from './options.ts'

export interface RunServerOptions extends ServerOptions {
  /** Called once it listens. */
  onListening?: (server: Server) => void
}

/** Serves until SIGTERM or SIGINT, then closes cleanly: first the server, then the engine. Resolves with the exit code. */
export async function runServer(options: RunServerOptions): Promise<number> {
  const { onListening, ...rest } = options
  const stop = stopOnSignals()
  try {
    const server = await openServer(rest)
    onListening?.(server)
    if (!stop.signal.aborted) {
      await new Promise((resolve) => stop.signal.addEventListener('abort', resolve, { once: true }))
    }
    await server.close()
    return 0
  } finally {
    await options.engine.close()
    stop.dispose()
  }
}
