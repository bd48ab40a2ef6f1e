import { command } from '../command/command.ts'
import { databaseSettings } from '../service/settings.ts'

export const doctor = command({
  name: 'doctor',
  summary: 'Examines the database and gives advice',
  options: {
    xminAgeSeconds: {
      kind: 'integer',
      placeholder: 'seconds',
      description: 'Name transactions that are open for longer.',
      min: 0,
      default: 300,
    },
  },
  settings: databaseSettings,
  run: async ({ options, settings, output }) => (await import('./doctor.ts')).doctor(options, settings, output),
})
