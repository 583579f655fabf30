import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fastifyStatic from '@fastify/static';
import type { FastifyReply } from 'fastify';
import { AnnalsError } from '../errors.ts';
import type { HttpServer } from '../http/http-server-type.ts';
import { packageFolder } from '../package-folder.ts';
import { type Guide, Guides } from './guides.ts';
import { escapeHtml, type Page, pageHtml, pagePolicy } from './page.ts';

const hidden = { schema: { hide: true } };

/** The API reference at `/docs` and the guides under `/docs/guides`. */
export async function docsRoutes(app: HttpServer, { basePath }: { basePath: string }): Promise<void> {
  const guides = new Guides(join(packageFolder(), 'docs'), basePath);

  async function show(reply: FastifyReply, page: Omit<Page, 'basePath'>): Promise<FastifyReply> {
    return await reply
      .headers({ 'content-security-policy': pagePolicy, 'cache-control': 'no-cache' })
      .type('text/html; charset=utf-8')
      .send(pageHtml({ ...page, basePath }));
  }

  for (const path of ['/docs', '/docs/']) {
    app.get(path, hidden, async (_request, reply) => await show(reply, reference(basePath)));
  }

  for (const path of ['/docs/guides', '/docs/guides/']) {
    app.get(path, hidden, async (_request, reply) => {
      const body = `<main class="guide">${indexOf(guides, basePath)}</main>`;
      return await show(reply, { title: 'Guides', current: 'guides', body });
    });
  }

  app.get<{ Params: { '*': string } }>('/docs/guides/*', hidden, async (request, reply) => {
    const guide = guides.find(request.params['*'].replace(/\.md$/, ''));
    if (guide === undefined) throw new AnnalsError('resource_not_found', 'There is no such guide.');
    const body = `<main class="guide">${guide.html}</main>`;
    return await show(reply, { title: guide.title, current: 'guides', body });
  });

  await app.register(fastifyStatic, {
    root: join(packageFolder(), 'docs', 'site'),
    prefix: '/docs/site/',
    decorateReply: false,
    maxAge: '1h',
  });
  await app.register(fastifyStatic, {
    root: join(packageFolder(), 'docs', 'images'),
    prefix: '/docs/guides/images/',
    decorateReply: false,
    maxAge: '1h',
  });
  await app.register(fastifyStatic, {
    root: viewerFolder(),
    prefix: '/docs/viewer/',
    decorateReply: false,
    allowedPath: (path) => path === '/swagger-ui-bundle.js' || path === '/swagger-ui.css',
    maxAge: '1h',
  });
}

/** The folder with the scripts and styles of Swagger UI. */
function viewerFolder(): string {
  return join(dirname(fileURLToPath(import.meta.resolve('@fastify/swagger-ui'))), 'static');
}

function reference(basePath: string): Omit<Page, 'basePath'> {
  return {
    title: 'API reference',
    current: 'reference',
    body: `<main id="reference" data-document="${escapeHtml(`${basePath}/openapi.json`)}"></main>`,
    styles: ['/viewer/swagger-ui.css'],
    scripts: ['/viewer/swagger-ui-bundle.js', '/site/reference.js'],
  };
}

function indexOf(guides: Guides, basePath: string): string {
  const { guides: names, records } = guides.list();
  const item = ({ name, title }: Guide) =>
    `<li><a href="${escapeHtml(`${basePath}/docs/guides/${name}`)}">${escapeHtml(title)}</a></li>`;
  const list = (group: readonly string[]) =>
    `<ul>${group
      .map((name) => guides.find(name))
      .map((guide) => (guide === undefined ? '' : item(guide)))
      .join('\n')}</ul>`;
  return `<h1>Guides</h1>\n${list(names)}\n<h2>Records of decisions</h2>\n${list(records)}`;
}
