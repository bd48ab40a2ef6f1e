import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

export interface Program {
  /** Where it is, with room for tables. */
  readonly folder: string
  /** Runs it to its end, and gives what it wrote, line by line. Fails unless it ends well, or was killed in `onLine`. */
  run(args: readonly string[], onLine?: (line: string, child: ChildProcess) => void): Promise<string[]>
  remove(): Promise<void>
}

/** A program to be run in processes of its own. Node 20 runs no TypeScript, so it is made of the sources being tested. */
export async function bundle(entry: URL): Promise<Program> {
  // Below node_modules it finds its packages.
  const folder = await mkdtemp(fileURLToPath(new URL('../../../../node_modules/.program-', import.meta.url)))
  const name = `${basename(fileURLToPath(entry), '.ts')}.mjs`
  await build({
    configFile: false,
    logLevel: 'error',
    build: {
      ssr: fileURLToPath(entry),
      outDir: folder,
      emptyOutDir: false,
      rolldownOptions: { output: { entryFileNames: name } },
    },
  })
  return {
    folder,
    run: (args, onLine) => run([join(folder, name), ...args], onLine),
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

function run(args: readonly string[], onLine: (line: string, child: ChildProcess) => void = () => {}) {
  return new Promise<string[]>((resolve, reject) => {
    const child = spawn(process.execPath, args)
    const lines: string[] = []
    let [rest, problems] = ['', '']
    child.stdout.on('data', (data: Buffer) => {
      const parts = (rest + data.toString()).split('\n')
      rest = parts.pop() ?? ''
      for (const line of parts) {
        lines.push(line)
        onLine(line, child)
      }
    })
    child.stderr.on('data', (data: Buffer) => (problems += data.toString()))
    child.on('close', (code) => (code === 0 || child.killed ? resolve(lines) : reject(new Error(problems))))
  })
}
