import type { HttpServer } from '../../http/http-server-type.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { FindTenants } from '../../postgres/tenants/tenants-with.ts';
import type { Jobs } from './service.ts';

/** Runs jobs while the server listens. */
export async function jobUpkeep(
  app: HttpServer,
  { jobs, findTenants }: { jobs: Jobs; findTenants: FindTenants },
): Promise<void> {
  whileListening(app, { upkeep: [], begin: async () => jobs.work(findTenants), end: () => jobs.close() });
}
