/sbin/ldconfig || :
