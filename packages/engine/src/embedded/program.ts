import { spawn, type ChildProcess } from 'node:child_process'
import type { Folder } from './folder.ts'

/** The programs of Postgres that this process has under way for a folder, so that it can end them when it ends itself. */
const underway = new Set<{ folder: string; child: ChildProcess }>()

/**
 * Starts a program of Postgres in a session of its own: Ctrl-C in a terminal reaches every process of the foreground
 * group, and must not reach a server that others use.
 */
export function startProgram(path: string, args: string[], folder: Folder, output: 'pipe' | number): ChildProcess {
  const child = spawn(path, args, {
    ...folder.account,
    cwd: folder.path,
    detached: true,
    env: programEnvironment(),
    stdio: ['ignore', output, output],
    windowsHide: true,
  })
  const entry = { folder: folder.path, child }
  underway.add(entry)
  const forget = () => underway.delete(entry)
  child.once('exit', forget).once('error', forget)
  return child
}

/** From here on the program is not ended with this process. */
export function letGo(child: ChildProcess): void {
  for (const entry of underway) if (entry.child === child) underway.delete(entry)
}

/** The programs that would still be running when this process has ended. */
export function programsUnderway(folder: Folder): ChildProcess[] {
  return [...underway].filter((entry) => entry.folder === folder.path).map(({ child }) => child)
}

/** Ours, without what Postgres would take for its own settings, and with messages in English. */
export function programEnvironment(): NodeJS.ProcessEnv {
  const ours = Object.entries(process.env).filter(([name]) => !name.startsWith('PG') && !name.startsWith('LC_'))
  return { ...Object.fromEntries(ours), LC_ALL: 'C' }
}
