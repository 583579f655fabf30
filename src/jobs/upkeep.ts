import type { HttpServer } from '../http/http-server-type.ts';
import { whileListening } from '../http/while-listening.ts';
import type { Jobs } from './service.ts';

/** Runs jobs while the server listens. */
export async function jobUpkeep(app: HttpServer, { jobs }: { jobs: Jobs }): Promise<void> {
  whileListening(app, { upkeep: [], begin: async () => jobs.work(), end: () => jobs.close() });
}
