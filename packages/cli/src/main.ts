import { exitCodes, type Exit } from './exit-codes.ts'
import { readConfigFile } from './configuration/config-file.ts'
import { resolveSettings, type Sources } from './configuration/resolve.ts'
import type { Command } from './command/command.ts'
import { commands } from './commands.ts'
import { findCommand } from './command/find.ts'
import { helpOf, helpOfGroup } from './command/help.ts'
import { parseLine } from './command/parse.ts'
import { failureOf } from './failure.ts'
import { Output } from './output/output.ts'
import { version } from './version.ts'

/** Runs the line that this process was started with, and ends the process with its exit code. */
export async function run(): Promise<void> {
  // A reader that has seen enough, such as head(1), is no reason to complain.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    end('ok')
  })
  end(await runLine(process.argv.slice(2)))
}

async function runLine(line: readonly string[]): Promise<Exit> {
  const { stdout, stderr, env } = process
  let output = new Output({ json: line.includes('--json'), stdout, stderr, env })
  try {
    const found = findCommand(commands, line)
    if (found.kind === 'version') {
      output.answer({ version }, () => version)
      return 'ok'
    }
    if (found.kind === 'group') {
      output.answer(found.commands.map(jsonOf), () => helpOfGroup(found.group, found.commands))
      return 'ok'
    }
    const { command } = found
    const parsed = parseLine(command, found.rest)
    output = new Output({ json: parsed.json, stdout, stderr, env })
    if (parsed.help) {
      output.answer(jsonOf(command), () => helpOf(command))
      return 'ok'
    }
    const file = await readConfigFile(process.cwd(), parsed.config)
    const sources: Sources = { flags: parsed.flags, env, file }
    const settings = resolveSettings(command.settings, sources)
    const { args, options } = parsed
    return (await command.run({ args, options, settings, sources, output } as never)) ?? 'ok'
  } catch (error) {
    const failure = failureOf(error)
    output.fail(failure)
    return failure.exit
  }
}

function jsonOf({ name, summary, arguments: args, options, settings }: Command): unknown {
  return { name, summary, arguments: args, options, settings }
}

// A handler that outlived its grace may still hold the process open, and so may a connection that cannot be closed.
function end(exit: Exit): void {
  const { code } = exitCodes[exit]
  process.exitCode = code
  // Not before everything is written: to a pipe, that is not done at once.
  // oxlint-disable-next-line unicorn/no-process-exit -- see above
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)))
}
