import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../../', import.meta.url))
export const program = fileURLToPath(new URL('../bin/fencepost.js', import.meta.url))
