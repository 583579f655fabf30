import { join } from 'node:path';
import fastifyStatic from '@fastify/static';
import { AnnalsError } from '../core/errors.ts';
import { nothingAtThisPath } from '../http/error-answers.ts';
import type { HttpServer } from '../http/http-server-type.ts';
import type { ConsolePage } from './page.ts';

const hidden = { schema: { hide: true } };

/** Contract 13: files of this service alone, and no inline script or style. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'self'; form-action 'none'; frame-ancestors 'none'";

/**
 * The page of the console at `/console` with its files. Every address below it that is no file is the page, which has
 * views with addresses of their own. `/` leads to it, and to the reference where the page was not built.
 */
export async function pageRoutes(
  app: HttpServer,
  { page, folder }: { page: ConsolePage; folder: string },
): Promise<void> {
  app.get('/', hidden, async (_request, reply) => {
    return await reply.redirect(page.read() === undefined ? '/docs' : '/console');
  });

  for (const path of ['/console', '/console/*']) {
    app.get<{ Params: { '*'?: string } }>(path, hidden, async ({ params }, reply) => {
      if (/^(?:api|assets)(?:\/|$)/.test(params['*'] ?? '')) throw nothingAtThisPath();
      const built = page.read();
      if (built === undefined) throw notBuilt();
      return await reply
        .headers({
          'content-security-policy': policy,
          'cross-origin-opener-policy': 'same-origin',
          // With helmet's no-referrer some requests of the page itself would have the origin `null`.
          'referrer-policy': 'same-origin',
          'cache-control': 'no-cache',
        })
        .type('text/html; charset=utf-8')
        .send(built.html);
    });
  }

  await app.register(fastifyStatic, {
    root: join(folder, 'assets'),
    // In a checkout that was not built there are none.
    suppressWarning: true,
    prefix: '/console/assets/',
    decorateReply: false,
    dotfiles: 'ignore',
    preCompressed: true,
    // Their names change with their content.
    immutable: true,
    maxAge: '1y',
  });
}

function notBuilt(): AnnalsError {
  return new AnnalsError(
    'service_unavailable',
    'The page of the console is not built. Run "npm run prepare" in the folder of Annals.',
  );
}
