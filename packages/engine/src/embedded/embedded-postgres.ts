import { tmpdir } from 'node:os'
import { checkInteger } from '../check.ts'
import { FencepostError } from '../errors.ts'
import { openFailure } from './failure.ts'
import { openFolder, type Folder } from './folder.ts'
import { lockFolder } from './folder-lock.ts'
import { joinUsers } from './member.ts'
import { ensureDatabase } from './own-database.ts'
import { findServer } from './server.ts'
import { checkSettings, type Settings } from './settings.ts'
import { ensureServer, type StartOptions } from './start.ts'
import { makeTemporary } from './temporary.ts'
import { patiently } from './waiting.ts'

export interface EmbeddedPostgresOptions {
  /** The folder of the server and its data, which are kept from run to run. Default `.fencepost/postgres`. */
  directory?: string | undefined
  /** A folder of its own among the temporary files instead, which goes when the server stops. */
  temporary?: boolean | undefined
  /** False gives up the data when the machine crashes, for speed: for tests. Default true. */
  durable?: boolean | undefined
  /** More settings of Postgres. These and `durable` count when the server is started, not when one is joined. */
  settings?: Settings | undefined
  /** How long to wait for the server, which after a crash has to recover first. Default 60,000. */
  startTimeoutMs?: number | undefined
}

/** A Postgres server of this machine, as long as it is used. */
export interface EmbeddedPostgres {
  /** Of the database `fencepost`, with the password. */
  readonly url: string
  /** The folder of the server. Its log is `server.log` there. */
  readonly directory: string
  /** False once the server has ended by itself, or was killed. */
  isRunning(): boolean
  /** Ends this use. The server stops when nobody, in this process or any other, uses it any more. */
  close(): Promise<void>
}

/**
 * Starts a Postgres server in a folder, or joins the one that runs there. It stops when its last user closes it, exits
 * or ends by a signal; see member.ts.
 */
export async function openEmbeddedPostgres(options: EmbeddedPostgresOptions = {}): Promise<EmbeddedPostgres> {
  const { directory, temporary, ...start } = checkOptions(options)
  try {
    const folder = temporary ? await makeTemporary() : openFolder(directory)
    const member = joinUsers(folder, { temporary })
    try {
      const url = await openServer(folder, start)
      return {
        url,
        directory: folder.path,
        isRunning: () => findServer(folder) !== undefined,
        close: () => member.leave(),
      }
    } catch (error) {
      await member.leave().catch(() => {}) // the first error is the one to hear about
      throw error
    }
  } catch (error) {
    throw openFailure(error, directory)
  }
}

async function openServer(folder: Folder, start: StartOptions): Promise<string> {
  const lock = await patiently(lockFolder(folder, start.startTimeoutMs))
  try {
    const server = await ensureServer(folder, start)
    return await ensureDatabase(folder, server)
  } finally {
    lock.release()
  }
}

function checkOptions(options: EmbeddedPostgresOptions): StartOptions & { directory: string; temporary: boolean } {
  const { temporary = false, durable = true, settings = {}, startTimeoutMs = 60_000 } = options
  if (temporary && options.directory !== undefined) {
    throw new FencepostError('options_invalid', 'A temporary server has a folder of its own; give no directory.')
  }
  return {
    directory: temporary ? tmpdir() : (options.directory ?? '.fencepost/postgres'),
    temporary,
    durable,
    settings: checkSettings(settings),
    startTimeoutMs: checkInteger(startTimeoutMs, 'startTimeoutMs', 1),
  }
}
