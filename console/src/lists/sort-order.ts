/** The direction in which a list is sorted by a field; undefined where it is not. */
export function directionOf(sort: string, field: string): 'ASC' | 'DESC' | undefined {
  const [first = ''] = sort.split(',');
  const [name, direction = 'ASC'] = first.split(':');
  if (name !== field) return undefined;
  return direction.toUpperCase() === 'DESC' ? 'DESC' : 'ASC';
}

/** The order after a click on a field's heading: up, down, and up again. */
export function turnedSort(sort: string, field: string): string {
  return `${field}:${directionOf(sort, field) === 'ASC' ? 'DESC' : 'ASC'}`;
}
