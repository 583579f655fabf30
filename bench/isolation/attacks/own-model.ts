import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A model server of an attacker's own. */
export interface OwnModel {
  readonly url: string;
  close(): void;
}

export async function startModel(answer: (response: ServerResponse) => void): Promise<OwnModel> {
  const server = createServer((request, response) => request.resume().once('end', () => answer(response)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
