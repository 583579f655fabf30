import { setTimeout as sleep } from 'node:timers/promises';

export interface JobSeen {
  id: string;
  type: string;
  status: string;
  response?: unknown;
  metadata: { rows?: string; entries?: number; bytes?: number; error?: { type: string; message: string } };
}

/** Calls a service; anything as in fetch. */
export type Call = (path: string, init?: RequestInit) => Promise<Response>;

/** Makes an export and answers its job's id. */
export async function startExport(
  call: Call,
  tenant: string,
  options: { q: string; format: string; context?: boolean; bom?: boolean; rows?: string },
): Promise<string> {
  const response = await call(`/ai-service/${tenant}/jobs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ type: 'EXPORT', ...options }),
  });
  if (response.status !== 201) throw new Error(`no export: ${response.status} ${await response.text()}`);
  const { jobId } = (await response.json()) as { jobId: string };
  return jobId;
}

/** Waits until a job has ended. */
export async function endOfJob(call: Call, tenant: string, id: string, seconds = 60): Promise<JobSeen> {
  const until = performance.now() + seconds * 1_000;
  // Polls often at first, then less: each call takes processor time from the job.
  for (let pause = 20; ; pause = Math.min(pause * 1.5, 200)) {
    const response = await call(`/ai-service/${tenant}/jobs/${id}`);
    const job = (await response.json()) as JobSeen;
    if (response.status !== 200 || job.status !== 'in_progress') return job;
    if (performance.now() > until) throw new Error(`the job has not ended: ${JSON.stringify(job)}`);
    await sleep(pause);
  }
}

/** The items of a change history query, all pages of it, each as the text it came in. */
export async function itemsOfQuery(call: Call, tenant: string, q: string): Promise<string[]> {
  const items: string[] = [];
  for (let page = 1; ; page++) {
    const parameters = new URLSearchParams({ q, page: String(page), size: '100' });
    const text = await (await call(`/changelog/${tenant}/changelogs?${parameters}`)).text();
    const { totalPages } = JSON.parse(text) as { totalPages: number };
    const list = text.slice('{"items":['.length, text.lastIndexOf('],"page":'));
    if (list !== '') items.push(...list.split(/,(?=\{"at":")/));
    if (page >= totalPages) return items;
  }
}

/** The text of the file that an export has made. */
export async function contentOf(call: Call, tenant: string, id: string): Promise<string> {
  return await (await call(`/ai-service/${tenant}/jobs/${id}/content`)).text();
}
