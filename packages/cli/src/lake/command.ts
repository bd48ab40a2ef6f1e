import { command } from '../command/command.ts'

export const lakeDemo = command({
  name: 'lake demo',
  summary: 'Makes a sample lake, maintains every table of it and proves that no row has changed',
  options: {
    percent: {
      kind: 'integer',
      min: 1,
      max: 100,
      default: 100,
      description: 'How large the lake is: 5 has about a twentieth of the files.',
    },
    keep: { kind: 'boolean', description: 'Keep the lake and its Postgres, and say where they are.' },
  },
  run: async ({ options, output }) => (await import('./demo.ts')).demo(options, output),
})
