/** Where the engine writes what a person may want to know; pino fits. */
export interface Logger {
  debug?(fields: Record<string, unknown>, message: string): void
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}

export const silentLogger: Logger = { info() {}, warn() {}, error() {} }
