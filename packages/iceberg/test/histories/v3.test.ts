import { anyHistory } from './any-history.ts'

anyHistory(3)
