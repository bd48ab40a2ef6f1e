import { register } from 'node:module'

// What `node --import` is given, to be able to import TypeScript.
register('./load.js', import.meta.url)
