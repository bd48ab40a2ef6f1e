import { defineConfig, mergeConfig } from 'vitest/config'
import base from '../../vitest.config.ts'
import { mutants } from './mutants.ts'

// The ordinary tests, with one source file changed as it is loaded. Nothing on disk is touched.
const mutant = mutants.find(({ name }) => name === process.env['FENCEPOST_MUTANT'])

export default mergeConfig(
  base,
  defineConfig({
    plugins: [
      {
        name: 'mutant',
        enforce: 'pre',
        transform(code, id) {
          if (mutant === undefined || !id.endsWith(mutant.file)) return undefined
          const broken = code.replaceAll(mutant.find, mutant.replace)
          if (broken === code) throw new Error(`Mutant ${mutant.name}: its text is not in ${mutant.file}`)
          return { code: broken, map: null }
        },
      },
    ],
    test: { bail: 1, retry: 0, testTimeout: 15_000 },
  }),
)
