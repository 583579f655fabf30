import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from '../temporary-folder.ts';
import { accepts } from './accepts.ts';
import { findNginx } from './nginx-program.ts';
import { ownPort } from './own-port.ts';

/**
 * Starts nginx before a service, with its defaults for everything that a proxy may set or with these locations, for this
 * test. Returns its base URL.
 */
export async function startNginx(
  baseUrl: string,
  options: { readonly port?: number; readonly locations?: string } = {},
): Promise<string> {
  const program = findNginx();
  if (program === undefined) throw new Error('this test needs nginx: apt-get install nginx');
  const { port = await ownPort(), locations = `location / { proxy_pass ${baseUrl}; }` } = options;
  const folder = temporaryFolder();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events {}
http {
  access_log off;
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
  server {
    listen 127.0.0.1:${port};
    ${locations}
  }
}
`,
  );
  const child = spawn(program, ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')], {
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  onTestFinished(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`);
    await sleep(20);
  }
  return `http://127.0.0.1:${port}`;
}
