import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startChromium } from '../../console/test/support/chromium.ts';
import { freePort } from '../../src/postgres/embedded/free-port.ts';
import { writePortal } from './lemonldap.ts';

// A person signs in with a browser: at LemonLDAP::NG, to Annals behind nginx under a path. README.md says what it needs.
const folder = await mkdtemp(join(tmpdir(), 'annals-sign-in-'));
const [providerPort, proxyPort, servicePort] = [await freePort(), await freePort(), await freePort()];
const issuer = `http://localhost:${providerPort}/`;
const baseUrl = `http://127.0.0.1:${proxyPort}/tools/annals`;
const clientSecret = randomBytes(24).toString('base64url');
const launcher = join(import.meta.dirname, '../../bin/annals.js');
const children: ChildProcess[] = [];
const environment = {
  PATH: process.env.PATH,
  ANNALS_DATA_DIR: join(folder, 'data'),
  ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  PORT: String(servicePort),
  ANNALS_BASE_URL: baseUrl,
  ANNALS_OIDC_ISSUER: issuer,
  ANNALS_OIDC_CLIENT_ID: 'annals',
  ANNALS_OIDC_CLIENT_SECRET: clientSecret,
  ANNALS_OIDC_RULES: join(folder, 'rules.json'),
  ANNALS_OIDC_SCOPE: 'groups',
};

try {
  await run();
} finally {
  for (const child of children.toReversed()) {
    if (child.exitCode !== null) continue;
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  await rm(folder, { recursive: true, force: true });
}

async function run(): Promise<void> {
  const rule = { claims: { groups: 'timelords' }, tenants: ['acme'], scopes: ['changelog.changelog_manage'] };
  await writeFile(join(folder, 'rules.json'), JSON.stringify({ rules: [rule] }));
  const portal = await writePortal(folder, { issuer, clientSecret, baseUrl });
  const listen = ['--host', '127.0.0.1', '--port', String(providerPort)];
  start('plackup', [...listen, portal.program], { ...process.env, ...portal.environment });
  execFileSync(process.execPath, [launcher, 'tenant', 'create', 'acme'], { env: environment, stdio: 'ignore' });
  start(process.execPath, [launcher, 'serve'], environment);
  start('nginx', ['-p', folder, '-c', await writeProxy(), '-e', join(folder, 'error.log')], process.env);
  await answers(`${issuer}.well-known/openid-configuration`);
  await answers(`${baseUrl}/console/`);

  const browser = await startChromium();
  const page = await browser.newPage({ locale: 'en-GB' });
  const signIn = () => page.getByRole('link', { name: "Sign in with your company's account" });
  try {
    await page.goto(`${baseUrl}/console/`);
    await signIn().click();
    await page.locator('input[name=user]').fill('dwho');
    await page.locator('input[name=password]').fill('dwho');
    await page.locator('button[type=submit]').first().click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    console.log(`signed in as ${await page.locator('.account-names').textContent()}`);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL(`${baseUrl}/console/`);
    await signIn().waitFor();
    await signIn().click();
    await page.locator('input[name=user]').waitFor();
    console.log('signed out there too: the provider asks for the account again');
  } catch (error) {
    console.log(`${page.url()}\n${await page.locator('body').textContent()}`);
    throw error;
  } finally {
    await browser.close();
  }
}

function start(program: string, parameters: string[], env: NodeJS.ProcessEnv): void {
  children.push(
    spawn(program, parameters, { env, stdio: ['ignore', 'ignore', process.env.VERBOSE ? 'inherit' : 'ignore'] }),
  );
}

async function answers(url: string): Promise<void> {
  for (let attempt = 0; attempt < 300; attempt += 1) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok === true) return;
    await sleep(200);
  }
  throw new Error(`${url} does not answer`);
}

async function writeProxy(): Promise<string> {
  const file = join(folder, 'nginx.conf');
  await mkdir(join(folder, 'temporary'));
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  await writeFile(
    file,
    `daemon off;
pid ${folder}/nginx.pid;
events {}
http {
  access_log off;
  ${temporary.map((name) => `${name}_temp_path ${folder}/temporary/${name};`).join('\n  ')}
  server {
    listen 127.0.0.1:${proxyPort};
    location /tools/annals/ {
      proxy_pass http://127.0.0.1:${servicePort};
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
    }
  }
}
`,
  );
  return file;
}
