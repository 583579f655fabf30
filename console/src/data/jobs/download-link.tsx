import type { Job } from '@annals/client';
import { apiUrl, readsContext, readsHistory, session } from '../../api/session.ts';
import { Icon } from '../../components/icon.tsx';

/** The file of an export. The service sends it as an attachment. */
export function DownloadLink({ job }: { readonly job: Job }) {
  const isThere = job.type === 'EXPORT' && job.status === 'success';
  if (!isThere || !readsHistory()) return null;
  if (job.metadata.context === true && !readsContext()) return null;
  const tenant = encodeURIComponent(session.value?.tenant ?? '');
  return (
    <a class="button plain" href={`${apiUrl}/ai-service/${tenant}/jobs/${encodeURIComponent(job.id)}/content`} download>
      <Icon name="download" />
      {job.metadata.format ?? 'File'}
    </a>
  );
}
