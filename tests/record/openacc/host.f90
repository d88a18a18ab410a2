! The same in Fortran.
program host
  implicit none
  integer, parameter :: count = 1000, steps = 20
  double precision :: from(count), to(count)
  integer :: i, step
  from = 0
  !$acc data copyin(from) copyout(to)  ! data
  do step = 1, steps
    !$acc parallel loop  ! parallel
    do i = 1, count
      to(i) = from(i) + step
    end do
    !$acc update host(to)  ! update
  end do
  !$acc end data
  print '(f6.1)', to(1)
  stop 3
end program
