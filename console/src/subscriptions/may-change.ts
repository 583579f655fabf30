import { allows, readsHistory } from '../api/session.ts';

/** Whether the session may pause, test and delete subscriptions. */
export function mayManage(): boolean {
  return allows('changelog.subscription_manage');
}

/** Whether it may make, change, resume and replay them too: who has changes sent has to be allowed to read them. */
export function mayChange(): boolean {
  return mayManage() && readsHistory();
}
