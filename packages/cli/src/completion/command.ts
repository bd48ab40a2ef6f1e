import { command, type Command } from '../command/command.ts'
import { completionScript, shells } from './script.ts'

/** The command that prints what a shell completes these commands by. */
export function completion(commands: () => readonly Command[]): Command {
  return command({
    name: 'completion',
    summary: 'Prints a script by which a shell completes commands and flags',
    arguments: { shell: { description: 'The shell that reads it.', choices: shells } },
    async run({ args, output }) {
      const script = completionScript(args.shell, commands())
      output.answer({ shell: args.shell, script }, () => script)
    },
  })
}
