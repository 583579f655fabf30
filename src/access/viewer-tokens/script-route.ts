import { existsSync } from 'node:fs';
import { join } from 'node:path';
import fastifyStatic from '@fastify/static';
import { AnnalsError } from '../../core/errors.ts';
import type { HttpServer } from '../../http/http-server-type.ts';

const name = 'viewer.js';

/** Serves the web component to pages of every origin. */
export async function viewerScriptRoute(app: HttpServer, { folder }: { folder: string }): Promise<void> {
  await app.register(fastifyStatic, {
    root: folder,
    // Missing in a checkout that is not built.
    suppressWarning: true,
    serve: false,
    preCompressed: true,
    maxAge: '1h',
  });

  app.get(`/${name}`, { schema: { hide: true } }, async (_request, reply) => {
    if (!existsSync(join(folder, name))) throw notBuilt();
    return await reply.header('cross-origin-resource-policy', 'cross-origin').sendFile(name);
  });
}

function notBuilt(): AnnalsError {
  return new AnnalsError(
    'service_unavailable',
    'The viewer is not built. Run "npm run prepare" in the folder of Annals.',
  );
}
