import type { Mutant } from './mutant.ts'

const health = 'packages/maintenance/src/health'

export const mutants: readonly Mutant[] = [
  {
    name: 'maintenance: points of losses that do not add up',
    file: `${health}/health.ts`,
    find: '.slice(0, missing)',
    replace: '.slice(0, 0)',
    tests: [`${health}/health.test.ts`],
    by: 'the losses are what it lacks',
  },
  {
    name: 'maintenance: an action that is only worth it once another was done',
    file: `${health}/recommended-actions.ts`,
    find: '(100 * saved) / (final + saved) >= settings.minPoints',
    replace: '(100 * saved) / now >= settings.minPoints',
    tests: [`${health}/health.test.ts`],
    by: 'makes no other worth it',
  },
  {
    name: 'maintenance: a table property that counts less than Iceberg’s own',
    file: `${health}/health-settings.ts`,
    find: '[setting.property, setting.icebergProperty]',
    replace: '[setting.icebergProperty, setting.property]',
    tests: [`${health}/health-settings.test.ts`],
    by: 'comes before one of Iceberg',
  },
]
