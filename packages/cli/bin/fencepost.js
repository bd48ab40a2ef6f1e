#!/usr/bin/env node
// A file of its own, and not one that is built: npm links it when it installs, which is before there is a dist/.
// oxlint-disable-next-line no-restricted-imports -- Node runs this as it is, and cannot run the source
import { run } from '../dist/main.js'

await run()
